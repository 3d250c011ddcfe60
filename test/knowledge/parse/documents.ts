import { crc32, deflateRawSync, deflateSync } from 'node:zlib';

/** A minimal PDF. Each page is the text of its lines; null makes a page with an image and no text. */
export function pdfOf(pages: (string[] | null)[], options: { title?: string; encrypt?: boolean } = {}): Buffer {
  const objects: string[] = [];
  const add = (body: string) => objects.push(body);
  add('<< /Type /Catalog /Pages 2 0 R >>');
  const first = 4;
  const kids = pages.map((_, place) => `${first + place * 2} 0 R`).join(' ');
  add(`<< /Type /Pages /Kids [${kids}] /Count ${pages.length} >>`);
  add('<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>');
  pages.forEach((lines, place) => {
    const drawn = (lines ?? []).map(
      (line, row) => `1 0 0 1 50 ${750 - row * 20} Tm (${line.replace(/[()\\]/g, '\\$&')}) Tj`,
    );
    const stream = lines ? `BT /F1 12 Tf ${drawn.join('\n')} ET` : '0.5 g 0 0 612 792 re f';
    add(
      `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >> /Contents ${first + place * 2 + 1} 0 R >>`,
    );
    add(`<< /Length ${stream.length} >>\nstream\n${stream}\nendstream`);
  });
  if (options.title) add(`<< /Title (${options.title}) >>`);
  const info = options.title ? ` /Info ${objects.length} 0 R` : '';
  const key = '0123456789abcdef0123456789abcdef';
  if (options.encrypt) {
    add(`<< /Filter /Standard /V 1 /R 2 /O <${key}${key}> /U <${key}${key}> /P -4 >>`);
  }
  const encrypt = options.encrypt ? ` /Encrypt ${objects.length} 0 R /ID [<${key}> <${key}>]` : '';
  let text = '%PDF-1.4\n';
  const offsets = objects.map((body, place) => {
    const at = text.length;
    text += `${place + 1} 0 obj\n${body}\nendobj\n`;
    return at;
  });
  const table = offsets.map((at) => `${String(at).padStart(10, '0')} 00000 n \n`).join('');
  const xref = text.length;
  text += `xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${table}`;
  text += `trailer\n<< /Size ${objects.length + 1} /Root 1 0 R${info}${encrypt} >>\nstartxref\n${xref}\n%%EOF`;
  return Buffer.from(text, 'latin1');
}

/** A PDF whose page is a stream that inflates to so many bytes. */
export function pdfBomb(bytes: number): Buffer {
  const packed = deflateSync(Buffer.alloc(bytes, ' '));
  const head = Buffer.from(
    `%PDF-1.4\n1 0 obj\n<< /Type /Catalog /Pages 2 0 R >>\nendobj\n2 0 obj\n<< /Type /Pages /Kids [3 0 R] /Count 1 >>\nendobj\n3 0 obj\n<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 4 0 R >>\nendobj\n4 0 obj\n<< /Filter /FlateDecode /Length ${packed.length} >>\nstream\n`,
  );
  return Buffer.concat([head, packed, Buffer.from('\nendstream\nendobj\ntrailer\n<< /Root 1 0 R >>\n%%EOF')]);
}

/** A ZIP archive of these files. `claimed`: the unpacked size that the archive names instead of the true one. */
export function zipOf(files: Record<string, Buffer | string>, claimed?: number): Buffer {
  const parts: Buffer[] = [];
  const directory: Buffer[] = [];
  let at = 0;
  for (const [name, given] of Object.entries(files)) {
    const content = Buffer.from(given);
    const packed = deflateRawSync(content);
    const common = Buffer.alloc(26);
    common.writeUInt16LE(20, 0);
    common.writeUInt16LE(8, 4);
    common.writeUInt32LE(crc32(content), 10);
    common.writeUInt32LE(packed.length, 14);
    common.writeUInt32LE(claimed ?? content.length, 18);
    common.writeUInt16LE(name.length, 22);
    const local = Buffer.concat([Buffer.from('PK\u0003\u0004'), common, Buffer.from(name), packed]);
    const rest = Buffer.alloc(14);
    rest.writeUInt32LE(at, 10);
    directory.push(
      Buffer.concat([Buffer.from('PK\u0001\u0002'), Buffer.from([20, 0]), common, rest, Buffer.from(name)]),
    );
    parts.push(local);
    at += local.length;
  }
  const central = Buffer.concat(directory);
  const end = Buffer.alloc(22);
  end.write('PK\u0005\u0006');
  end.writeUInt16LE(directory.length, 8);
  end.writeUInt16LE(directory.length, 10);
  end.writeUInt32LE(central.length, 12);
  end.writeUInt32LE(at, 16);
  return Buffer.concat([...parts, central, end]);
}

const CONTENT_TYPES = `<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" ContentType="application/xml"/><Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/><Override PartName="/word/styles.xml" ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.styles+xml"/></Types>`;
const RELATIONS = `<?xml version="1.0"?><Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="r1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" Target="word/document.xml"/></Relationships>`;
const DOCUMENT_RELATIONS = `<?xml version="1.0"?><Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="r1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/styles" Target="styles.xml"/></Relationships>`;
const W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"';
const STYLES = `<?xml version="1.0"?><w:styles ${W}><w:style w:type="paragraph" w:styleId="Heading1"><w:name w:val="heading 1"/></w:style></w:styles>`;

const paragraph = (text: string, style = '') =>
  `<w:p>${style && `<w:pPr><w:pStyle w:val="${style}"/></w:pPr>`}<w:r><w:t>${text}</w:t></w:r></w:p>`;

/** A DOCX: `# ` begins a heading, an array is a table row. */
export function docxOf(lines: (string | string[])[], more: Record<string, Buffer> = {}): Buffer {
  const body = lines.map((line) => {
    if (typeof line === 'string') return line.startsWith('# ') ? paragraph(line.slice(2), 'Heading1') : paragraph(line);
    return `<w:tbl><w:tr>${line.map((cell) => `<w:tc>${paragraph(cell)}</w:tc>`).join('')}</w:tr></w:tbl>`;
  });
  return zipOf({
    '[Content_Types].xml': CONTENT_TYPES,
    '_rels/.rels': RELATIONS,
    'word/_rels/document.xml.rels': DOCUMENT_RELATIONS,
    'word/styles.xml': STYLES,
    'word/document.xml': `<?xml version="1.0"?><w:document ${W}><w:body>${body.join('')}</w:body></w:document>`,
    ...more,
  });
}
