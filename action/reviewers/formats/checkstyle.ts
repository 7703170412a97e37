/**
 * Checkstyle XML (REV-1a). The text is a program's that read an attacker's file, so the document may
 * declare nothing: no document type means no entities, and nothing to expand or to fetch.
 */
import { SaxesParser } from 'saxes';
import type { Severity } from '../reviewer.ts';
import type { ParseContext, Parsed } from './format.ts';
import { collect, titleFrom } from './place.ts';

/** Why a document is not read, thrown out of the parser's events. */
class Refused extends Error {}

/** The element that each element may stand in; any other document is not Checkstyle's. */
const parents: Readonly<Record<string, string>> = { checkstyle: '', file: 'checkstyle', error: 'file' };

/** Reads a whole Checkstyle document; one that is cut off, declares a document type or tells of an exception is invalid. */
export function parseCheckstyle(stdout: string, context: ParseContext): Parsed {
  const said = collect(context);
  const open: string[] = [];
  let path: string | null = null;
  const parser = new SaxesParser({ xmlns: false });
  parser.on('error', (error) => {
    throw new Refused(`not well-formed XML: ${error.message.slice(0, 120)}`);
  });
  parser.on('xmldecl', ({ encoding }) => {
    if (encoding !== undefined && !/^(?:utf-?8|us-ascii)$/i.test(encoding))
      throw new Refused('an encoding other than UTF-8');
  });
  parser.on('doctype', () => {
    throw new Refused('a document type, which could declare entities');
  });
  parser.on('opentag', ({ name, attributes }) => {
    if (name === 'exception')
      throw new Refused('the program tells of an exception: it did not run to its end');
    if (parents[name] === undefined || parents[name] !== (open.at(-1) ?? ''))
      throw new Refused(`not Checkstyle XML: <${name.slice(0, 40)}> in <${open.at(-1) ?? 'nothing'}>`);
    open.push(name);
    if (name === 'file') {
      path = attributes['name'] ?? '';
      if (path === '') throw new Refused('not Checkstyle XML: a file without a name');
    }
    if (name !== 'error') return;
    const message = attributes['message'] ?? '';
    const rule = attributes['source'] ?? null;
    said.add({
      path,
      start: lineOf(attributes['line']),
      end: null,
      severity: severityOf(attributes['severity'], context),
      title: titleFrom(rule, message),
      body: message.trim() || (rule ?? 'no message'),
    });
  });
  parser.on('closetag', () => {
    open.pop();
  });
  parser.on('text', (text) => {
    if (text.trim() !== '') throw new Refused('not Checkstyle XML: text between elements');
  });
  try {
    parser.write(stdout.replace(/^\ufeff/, '')).close();
  } catch (error) {
    if (error instanceof Refused) return { ok: false, detail: error.message };
    throw error;
  }
  return said.result();
}

function lineOf(text: string | undefined): number | null {
  return text !== undefined && /^\d{1,9}$/.test(text) ? Number(text) : null;
}

/** What does not name a known severity counts as an error: Checkstyle's own default. */
function severityOf(text: string | undefined, context: ParseContext): Severity {
  if (text === 'warning') return context.severity.warning;
  if (text === 'ignore') return 'info';
  return text === 'info' ? context.severity.note : context.severity.error;
}
