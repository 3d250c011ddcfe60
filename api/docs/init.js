/** Shows /openapi.json with Swagger UI, so that a reader authorizes with a token and tries the calls. */

const here = new URL('.', location.href);

function followColorScheme() {
  const dark = matchMedia('(prefers-color-scheme: dark)');
  const apply = () => document.documentElement.classList.toggle('dark-mode', dark.matches);
  dark.addEventListener('change', apply);
  apply();
}

async function readDescription() {
  const response = await fetch(new URL('openapi.json', here));
  if (!response.ok) throw new Error(`openapi.json answered ${response.status}`);
  const description = await response.json();
  // Calls go to the address of this page, which may differ from FLEET_BASE_URL: the page may ask no other.
  return { ...description, servers: [{ url: here.href.replace(/\/$/, '') }] };
}

followColorScheme();
try {
  window.SwaggerUIBundle({
    spec: await readDescription(),
    dom_id: '#reference',
    deepLinking: true,
    docExpansion: 'list',
    defaultModelsExpandDepth: 0,
    displayRequestDuration: true,
    filter: true,
    showExtensions: true,
    validatorUrl: null,
  });
} catch (error) {
  document.querySelector('#reference').textContent = `The description cannot be shown: ${error.message}`;
}
