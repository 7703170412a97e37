/** Recorded answers of a server, by nock: active while a file's tests run, whatever earlier files of the worker left. */
import nock from 'nock';
import { afterAll, afterEach, beforeAll } from 'vitest';

/** Call at the top of a file or a `describe` that records answers: on before its tests, clean after each, off at the end. */
export function recordsAnswers(): void {
  beforeAll(() => {
    if (!nock.isActive()) nock.activate();
  });
  afterEach(() => nock.cleanAll());
  afterAll(() => nock.restore());
}
