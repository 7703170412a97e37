/** Names of environment variables that hold keys or other secrets: the only ones a login tells of (RUN-9), and never a value. */
export const KEY_NAME = /(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)$/;
