/** One way in which a text tries to instruct the agent that reads it. Patterns are bounded: a scan takes linear time. */
export interface InjectionRule {
  rule: string;
  /** Shown in the reason. */
  what: string;
  /** One of these is in every match of the folded text. */
  literals: readonly string[];
  pattern: RegExp;
}

/** Characters of the longest match; phrases span words, so a stream is held back by as many. */
export const PHRASE_CHARS = 256;

/** Up to n characters of the same sentence. */
const gap = (chars: number): string => `[^.!?\\n]{0,${chars}}?`;
const OLD =
  'previous|prior|above|earlier|preceding|foregoing|system|original|initial|your|all|any|every|these|those|past|existing|given';
const ORDERS =
  'instructions?|prompts?|rules|guidelines|directives?|directions|programming|guardrails|restrictions|constraints|polic(?:y|ies)|safety|training';

const rule = (name: string, what: string, literals: readonly string[], pattern: string): InjectionRule => ({
  rule: name,
  what,
  literals,
  pattern: new RegExp(pattern, 'u'),
});

/** Matched against text as `foldedText` gives it. */
export const INJECTION_RULES: readonly InjectionRule[] = [
  rule(
    'override',
    'an order to ignore instructions',
    ['ignor', 'disregard', 'forget', 'overrid', 'bypass', 'discard', 'neglect', 'circumvent'],
    `(?<!\\b(?:not|never|t|cannot|without) )\\b(?:ignor(?:e|ing)|disregard(?:ing)?|forget|overrid(?:e|ing)|bypass(?:ing)?|discard|neglect|circumvent)\\b${gap(24)}\\b(?:${OLD})\\b${gap(32)}\\b(?:${ORDERS})\\b`,
  ),
  rule(
    'forget_all',
    'an order to forget what came before',
    ['forget ', 'ignore ', 'disregard '],
    `(?<!\\b(?:not|never|t) )\\b(?:forget|ignore|disregard) (?:everything|all|anything)(?: that)?(?: (?:you|we|i))?(?: (?:have|had|'ve))?(?: been)? ?(?:said|told|learned|know|above|before|previously|prior)\\b`,
  ),
  rule(
    'persona',
    'an order to become another',
    ['you are now', 'act as', 'pretend', 'roleplay as', 'role-play as', 'from now on', 'you are no longer', 'simulate'],
    `\\b(?:you are (?:now|no longer)|from now on,? you(?: are| will be|'re)?|act as|pretend(?: to be| that you are| you are)?|role-?play as|simulate)\\b${gap(48)}\\b(?:dan|jailbroken|jailbreak|unrestricted|unfiltered|uncensored|bound by|no restrictions|no rules|without (?:any )?(?:restrictions|rules|filters|limits|limitations|guidelines)|evil|amoral|root user|god mode|developer mode|do anything now)\\b`,
  ),
  rule(
    'mode',
    'an order to switch a mode of the model',
    [' mode'],
    `\\b(?:enable|enter|activate|switch (?:in)?to|start|turn on|you are in)\\b${gap(16)}\\b(?:developer|god|debug|jailbreak|dan|sudo|unrestricted|unfiltered|admin override|maintenance override|root) mode\\b`,
  ),
  rule(
    'prompt_disclosure',
    'a request for the hidden prompt',
    ['prompt', 'instructions', 'system message'],
    `\\b(?:reveal|show|print|repeat|output|display|tell me|give me|leak|dump|recite|write out|what (?:is|are|was|were))\\b${gap(32)}\\b(?:your|the) (?:(?:full|entire|exact|complete|own|secret|hidden|original|initial|internal|confidential) ){0,3}(?:system (?:prompt|message|instructions)|(?:hidden|secret|initial|original|internal|confidential) (?:prompt|instructions|rules)|prompt verbatim|instructions verbatim)\\b`,
  ),
  rule(
    'text_above',
    'a request to repeat what is above',
    [' above', 'preceding'],
    `\\b(?:repeat|print|output|copy|translate|summari[sz]e|encode) (?:all |everything |the |back )?(?:of )?(?:the )?(?:words|text|content|everything|instructions|prompt)? ?(?:above|preceding this|before this)(?: this)?\\b${gap(40)}\\b(?:verbatim|word for word|starting with|code block|you are|system)\\b`,
  ),
  rule(
    'role_marker',
    'a marker of a chat format',
    [
      '<|',
      '[inst',
      '<<sys',
      '[/inst',
      '### system',
      '### instruction',
      '[system',
      '<system',
      '</system',
      '{{#system',
      '<assistant',
      'start_of_turn',
    ],
    `<\\|[a-z_]{1,24}\\|>|\\[/?inst\\]|<</?sys>>|(?:^|\\n) ?#{2,4} ?(?:system|instruction)s? ?(?:prompt|message)? ?:|\\[system\\] ?\\(?#|\\[system (?:message|prompt|override|note)\\]|</?(?:system|system_prompt|system-reminder|assistant)>|\\{\\{#system|<start_of_turn>`,
  ),
  rule(
    'fake_turn',
    'a turn that claims to be the system',
    ['system:', 'system :', 'developer:', 'assistant:'],
    `(?:^|\\n) ?(?:system|developer|assistant) ?: ?(?:you (?:are|must|will|should)|ignore|new (?:instructions|rules|task)|override|the user (?:is|has)|from now on|access granted|sure,)`,
  ),
  rule(
    'new_orders',
    'an announcement of new instructions',
    ['instruction', 'directive', 'override', 'new task', 'new order', 'new rule', 'real task'],
    `\\b(?:new|updated|real|actual|revised|priority|important|urgent|secret|hidden|following) (?:system |admin |developer |security )?(?:instructions?|directives?|orders?|task|rules?|override)(?: (?:for|to) (?:the )?(?:ai|assistant|agent|model|llm|chatbot))? ?: ?(?:you|ignore|send|do|reply|respond|output|delete|call|forward|print|always|never|from|the (?:assistant|agent|ai|model))|\\b(?:system|admin|security) override\\b ?[:!.]`,
  ),
  rule(
    'addressed_to_model',
    'an order that is addressed to the model',
    [' ai', 'assistant', 'llm', 'language model', 'chatbot', 'agent'],
    `\\b(?:attention|note to|message (?:to|for)|instructions? (?:to|for)|important for|dear|hey|if you are an?) (?:the |all |any )?(?:ai|llm|language model|ai assistant|ai agent|chatbot|assistant|ai model|agent)s?(?: (?:reading|processing|summari[sz]ing)(?: this)?)?\\b${gap(40)}\\b(?:must|ignore|send|do not|instead|disregard|forward|include|output|reply|recommend|call|say|respond)\\b`,
  ),
  rule(
    'concealment',
    'an order to hide something from the user',
    ['tell', 'inform', 'notify', 'mention', 'alert', 'reveal', 'let the user', 'without the '],
    `\\b(?:do not|don't|dont|never|must not|without) (?:tell(?:ing)?|inform(?:ing)?|notify(?:ing)?|alert(?:ing)?|mention(?:ing)? (?:this|it) to|reveal(?:ing)? (?:this|it) to|let(?:ting)?) (?:the )?(?:user|human|operator|customer|anyone)\\b(?! (?:know )?(?:that )?(?:how|when|until|before|if|unless|yet))|\\bwithout the (?:user|human|operator)(?:'s)? (?:knowing|noticing|knowledge)\\b`,
  ),
  rule(
    'exfiltration',
    'an order to send secrets away',
    [
      'key',
      'password',
      'credential',
      'secret',
      'token',
      'environment variable',
      'system prompt',
      'conversation',
      'chat history',
      '.env',
      'ssh',
    ],
    `\\b(?:send|post|forward|upload|exfiltrate|e-?mail|transmit|append|leak|submit)\\b${gap(40)}\\b(?:api keys?|passwords?|credentials|secrets|access tokens?|tokens|environment variables|env file|system prompt|conversation|chat history|private keys?|ssh keys?|session cookies?)\\b${gap(32)}\\b(?:to|at|via|into)\\b${gap(24)}(?:https?://|ftp://|[\\w.+-]{1,40}@|webhook|attacker|my server|this url|the following url)`,
  ),
  rule(
    'image_leak',
    'an image address that is to be filled with what the agent knows',
    ['](http'],
    `!\\[[^\\]\\n]{0,64}\\]\\(https?://[^)\\s]{1,120}[?&][^)\\s=]{1,24}=(?:\\{|<|\\[|\\$|%7b|%5b|%3c)`,
  ),
  rule(
    'tool_order',
    'an order to call a tool unasked',
    ['tool', 'function', 'command'],
    `\\b(?:immediately|instead|now|first|before answering|secretly|silently),? (?:you must )?(?:call|invoke|execute|run|use) the [\\w.:-]{1,48} (?:tool|function|command)\\b${gap(40)}\\b(?:with|to|and)\\b`,
  ),
];

/** In other languages; matched against visible text in lower case, with its own letters. */
export const FOREIGN_RULES: readonly InjectionRule[] = [
  rule(
    'override',
    'an order to ignore instructions',
    ['ignorier', 'vergiss', 'missacht'],
    `\\b(?:ignorier(?:e|en sie)?|vergiss|vergessen sie|missachten? ?(?:sie)?)\\b${gap(24)}\\b(?:alle|vorherigen?|bisherigen?|obigen?|deine|ihre)\\b${gap(32)}\\b(?:anweisung(?:en)?|instruktionen|regeln|vorgaben|befehle)`,
  ),
  rule(
    'override',
    'an order to ignore instructions',
    ['ignore', 'oubli'],
    `\\b(?:ignor(?:e|ez|er)|oubli(?:e|ez|er))\\b${gap(24)}\\b(?:toutes|les|tes|vos|ces)\\b${gap(32)}(?:instructions|consignes|directives|règles)${gap(20)}(?:précédentes|antérieures|ci-dessus|initiales|système)`,
  ),
  rule(
    'override',
    'an order to ignore instructions',
    ['ignor', 'olvid'],
    `\\b(?:ignor(?:a|e|en|ar)|olvid(?:a|e|en|ar))\\b${gap(24)}\\b(?:todas|las|tus|sus)\\b${gap(32)}(?:instrucciones|reglas|indicaciones|órdenes)${gap(20)}(?:anteriores|previas|iniciales|de arriba|del sistema)`,
  ),
  rule(
    'override',
    'an order to ignore instructions',
    ['ignor', 'esque'],
    `\\b(?:ignor(?:e|ar|a|i)|esqueç?c?a)\\b${gap(24)}\\b(?:todas|tutte|as|le|suas)\\b${gap(32)}(?:instruções|istruzioni|regras|regole)${gap(20)}(?:anteriores|precedenti|acima|prévias)`,
  ),
  rule(
    'override',
    'an order to ignore instructions',
    ['忽略', '无视', '忘记', '忽視', '無視'],
    '(?:忽略|无视|忘记|忽視|無視)[^。\\n]{0,12}(?:之前|以上|上面|前面|先前|所有|全部|系统)[^。\\n]{0,8}(?:指令|提示|指示|说明|规则|命令)',
  ),
  rule(
    'override',
    'an order to ignore instructions',
    ['無視', '忘れ'],
    '(?:これまで|以前|上記|前|すべて|全て)の[^。\\n]{0,8}(?:指示|命令|ルール|プロンプト)[^。\\n]{0,6}(?:無視|忘れ)',
  ),
  rule(
    'override',
    'an order to ignore instructions',
    ['игнорир', 'забудь'],
    `(?:проигнорируй|игнорируй|забудь)(?:те)?${gap(24)}(?:все|всё|предыдущ|вышеуказанн|прошл)${gap(32)}(?:инструкци|указани|правил|команд)`,
  ),
];
