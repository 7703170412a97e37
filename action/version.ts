/** The version this runner tells the server at login. */
export const VERSION = '0.1.0';
