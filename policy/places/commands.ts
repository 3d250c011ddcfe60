/** Programs that open connections to what their arguments name, wherever they stand in a command. */
const CLIENT = /^(?:curl|wget|aria2c|lynx|w3m|ncat|netcat|telnet|ssh|sftp|dig|nslookup|traceroute)$/;
/** Clients whose names are ordinary words too: they count only as the first word. */
const FIRST_CLIENT = /^(?:https?|xh|nc|ping6?|ftp|tftp|host|links|axel|nmap|whois)$/;
/** Programs that read `host:path`, and files as well. */
const COPIER = /^(?:scp|rsync|git)$/;
/** What ends one command of a line and begins the next. */
const COMMAND_END = /[;|&\n()`]+/;
const TOKEN = /[<>]+|[^\s"'<>]+/g;
/** Options whose next word is a file or data. Only flags that take no value of their own may stand before the letter. */
const OPTION_OF_DATA: Record<string, RegExp> = {
  curl: /^(?:-[0-9afgijklnpqsvGILNORS#]*[bcdmouwAFHKTX]|--(?:config|cookie|cookie-jar|data|data-\w+|form|header|max-time|output|request|upload-file|user|user-agent|write-out))$/,
  wget: /^(?:-[cqvN]*[ioOP]|--(?:directory-prefix|header|input-file|output-document|output-file|post-data|post-file|user-agent))$/,
  ssh: /^-[46fqvACNT]*[ilopEF]$/,
  sftp: /^-[46qvCN]*[bioPF]$/,
};

/** A word of a command line. */
export interface CommandWord {
  text: string;
  /** What it may name beside URLs and addresses: `host`: any host, `remote`: the host of `host:path`. */
  may: 'host' | 'remote' | null;
}

/** The words of a command line, without quotes; a value behind `=` is a word of its own too. In linear time. */
export function* commandWords(line: string): Generator<CommandWord> {
  for (const command of line.split(COMMAND_END)) yield* wordsOf(command);
}

function* wordsOf(command: string): Generator<CommandWord> {
  let program = '';
  let may: CommandWord['may'] = null;
  let isFirst = true;
  let isData = false;
  for (const [text] of command.matchAll(TOKEN)) {
    if (/^[<>]/.test(text)) {
      isData = true; // a file
      continue;
    }
    yield { text, may: isData || text.startsWith('-') ? null : may };
    isData = OPTION_OF_DATA[program]?.test(text) === true;
    const value = assignedValue(text);
    if (value !== '') yield { text: value, may: null };
    const name = text.slice(text.lastIndexOf('/') + 1).toLowerCase();
    if (may === null) {
      if (CLIENT.test(name) || (isFirst && FIRST_CLIENT.test(name))) may = 'host';
      else if (COPIER.test(name)) may = 'remote';
      if (may !== null) program = name;
    }
    isFirst = false;
  }
}

/** What is behind the `=` of an option or a variable: `--file=…`, `if=…`; '' for none, also of `a==1.2`. */
export function assignedValue(word: string): string {
  return /^-{0,2}[\w.-]{1,64}=(?!=)(.*)$/s.exec(word)?.[1] ?? '';
}
