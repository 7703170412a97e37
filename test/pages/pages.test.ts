/** The pages as people meet them: in Chromium, without script, on wide and narrow screens, by day and by night. */
import type { Browser, BrowserContext, BrowserContextOptions, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { browserMissing, startBrowser } from '../helpers/browser.ts';
import { type TestStage, testStage } from '../helpers/stage.ts';
import * as look from './look.ts';

const missing = browserMissing();

it.runIf(missing !== null)('OPS-8: pages in a browser', (context) => context.skip(missing ?? ''));

describe.runIf(missing === null)('OPS-8: pages in a browser', { timeout: 60_000 }, () => {
  let stage: TestStage;
  let browser: Browser;
  let run: string;
  const contexts: BrowserContext[] = [];
  /** What a page should not do, as the browser tells it. */
  const complaints: string[] = [];

  beforeAll(async () => {
    [stage, browser] = await Promise.all([testStage(), startBrowser()]);
    const { repository } = await stage.repository({ name: 'shop', private: true });
    const commit = (message: string, files: Record<string, string>) =>
      repository.commit({ branch: 'topic', author: stage.author, message, files });
    await commit('Add coupons\n\nBlock: coupons', {
      'src/coupons.ts': 'const total = sum - coupon; // BUG\n',
      'src/cart.ts': 'export const cart = []; // NIT\n',
    });
    await commit('Name <b>prices</b>\n\nBlock: prices\nAfter: coupons', {
      'src/price.ts': 'export const price = 1;\n',
      'src/<script>alert(1)</script>.ts': 'export {};\n',
      [`src/${'deep/'.repeat(12)}file-with-a-very-long-name-that-goes-on-and-on.ts`]: 'export {};\n',
    });
    const pull = await repository.openPull({
      head: 'topic',
      user: stage.author,
      title:
        'Coupons <script>alert(1)</script> & prices that never fall below zero, however large the coupon is',
    });
    await stage.verdict(pull, { until: (check) => check.conclusion === 'failure', timeoutMs: 50_000 });
    await stage.settle();
    run = (await stage.run(pull))?.id ?? '';
    stage.gh.oauth.browser = stage.author;
  }, 120_000);
  afterAll(async () => {
    await browser?.close();
    await stage?.close();
  });
  afterEach(async () => {
    for (const context of contexts.splice(0)) await context.close();
    expect(complaints.splice(0)).toEqual([]);
  });

  /** A fresh browser profile; whatever it is refused, or asks of others, is a complaint. */
  async function open(options: BrowserContextOptions = {}): Promise<Page> {
    const context = await browser.newContext({ viewport: { width: 1200, height: 900 }, ...options });
    contexts.push(context);
    const page = await context.newPage();
    page.on('dialog', (dialog) => {
      complaints.push(`dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
    page.on('pageerror', (error) => complaints.push(`error: ${error.message}`));
    page.on('console', (message) => {
      // a page that asks to sign in is answered with 401, which a browser notes
      if (!/status of 40[134]/.test(message.text())) complaints.push(`console: ${message.text()}`);
    });
    const own = [new URL(stage.server.url).origin, new URL(stage.gh.url).origin];
    page.on('request', (request) => {
      if (!own.includes(new URL(request.url()).origin)) complaints.push(`request: ${request.url()}`);
    });
    return page;
  }
  const at = (path: string) => stage.server.url + path;
  const enter = async (page: Page, path = `/runs/${run}`) => {
    await page.goto(at(path));
    await page.getByRole('link', { name: 'Sign in with GitHub' }).click();
    await page.waitForURL(at(path));
  };

  it('without script: from the link of a check run over the sign-in to the run, and out again', async () => {
    const page = await open({ javaScriptEnabled: false });
    await enter(page);
    await page.getByRole('heading', { name: 'Failed' }).waitFor();
    expect(await page.title()).toContain('Coupons <script>alert(1)</script> & prices');
    expect(await page.getByRole('heading', { level: 1 }).textContent()).toContain(
      '<script>alert(1)</script>',
    );
    await page.getByRole('link', { name: 'Findings', exact: true }).click();
    const finding = page.locator('#F1');
    expect(await finding.textContent()).toContain('Marked line');
    await finding.getByRole('link', { name: /^row \d+ raised$/ }).click();
    await page.waitForURL(/\/ledger\?from=\d+#row-\d+$/);
    await page.getByRole('button', { name: 'Verify every row' }).click();
    await page.getByRole('heading', { name: 'The ledger is intact' }).waitFor();
    await page.getByRole('link', { name: 'Runs', exact: true }).click();
    await page.getByRole('link', { name: /^Coupons/ }).click();
    await page.waitForURL(at(`/runs/${run}`));
    await page.getByRole('link', { name: 'Queue', exact: true }).click();
    await page.getByRole('heading', { name: 'acme/shop' }).waitFor();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('link', { name: 'Sign in with GitHub' }).waitFor();
    await page.goto(at(`/runs/${run}`));
    await page.getByRole('link', { name: 'Sign in with GitHub' }).waitFor();
  });

  it('attack: with script on, nothing of a pull request runs, and our policy had nothing to refuse', async () => {
    const page = await open();
    await enter(page);
    for (const path of [`/runs/${run}`, '/', '/queue', `/runs/${run}/ledger`]) await page.goto(at(path));
    expect(await page.evaluate(look.SCRIPTS)).toBe(0);
    const cookie = await page.evaluate(look.COOKIES);
    expect(cookie, 'the visit is not for scripts').toBe('');
    const [visit] = await page.context().cookies();
    expect(visit).toMatchObject({ name: 'cs_visit', httpOnly: true, sameSite: 'Lax' });
  });

  it('is told by a reader’s software: pictures have names and words, tables have heads, all of it by keyboard', async () => {
    const page = await open();
    await enter(page);
    const graph = page.getByRole('img', { name: 'Blocks and the paths they own' });
    expect(await graph.locator('desc').textContent()).toMatch(/Block coupons, blocked, 2 files\./);
    await page.getByRole('img', { name: 'Tickets on a line of time' }).waitFor();
    await page.getByRole('img', { name: /^\d of 5 files reviewed/ }).waitFor();
    expect(await page.evaluate(look.UNNAMED)).toEqual([]);
    const levels = await page.evaluate<number[]>(look.HEADINGS);
    expect(levels[0]).toBe(1);
    expect(levels.filter((level) => level === 1)).toHaveLength(1);
    for (const [i, level] of levels.entries()) expect(level - (levels[i - 1] ?? 1)).toBeLessThanOrEqual(1);
    await page.keyboard.press('Tab');
    expect(await page.evaluate(look.FOCUSED)).toBe('Skip to the content');
    expect(await page.evaluate(look.BROKEN)).toEqual([]);
  });

  it.each([320, 390, 768, 1200])(
    'fits a screen of %i pixels: only pictures and tables scroll',
    async (width) => {
      const page = await open({ viewport: { width, height: 800 }, javaScriptEnabled: true });
      await enter(page);
      for (const path of [`/runs/${run}`, '/', '/queue', `/runs/${run}/ledger`]) {
        await page.goto(at(path));
        await page.evaluate(look.UNFOLD);
        const wide = await page.evaluate<number>(look.TOO_WIDE);
        expect(wide, `${path} at ${width}`).toBeLessThanOrEqual(0);
      }
    },
  );

  it('is dark by night, and text can be read in both', async () => {
    const papers: string[] = [];
    for (const colorScheme of ['light', 'dark'] as const) {
      const page = await open({ colorScheme });
      await enter(page);
      await page.evaluate(look.UNFOLD);
      papers.push(await page.evaluate<string>(look.PAPER));
      expect(await page.evaluate(look.FAINT), colorScheme).toEqual([]);
    }
    expect(papers[0]).not.toBe(papers[1]);
  });
});
