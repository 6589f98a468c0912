//! Phrases of orders in descriptions, by what they say.

use super::passage::Phrases;

/// Words at the beginning of a sentence among which its verb stands.
pub(super) const SOON: usize = 6;

pub(super) static TAKE_FOREIGN: Phrases = Phrases::new(&[
    "读取", "讀取", "を読", "传入", "传递",
]);

/// Private data.
pub(super) static PRIVATE: Phrases = Phrases::new(&[
    "github_token", "api_token", "api key", "api_key", "access token", "private key", "ssh key", "password",
    "passwör", "credential", "secret", "cookies", "environment variable", "system prompt", "conversation",
    "chat so far", "chat history", "last message", "direct messages", "social security", "credit card data",
    "medical history", "user's home", "current location", "clipboard", "meta-data", "home folder",
    "home directory", "browser history", "earlier chats", "personal data",
]);

/// Files of a person or a machine that no tool has to know.
pub(super) static HOME: Phrases = Phrases::new(&[
    "~/.ssh", "~/.aws", "~/.gnupg", "~/.cursor", "~/.config", "~/.kube", "~/.bash", "~/.zsh", "~/.netrc",
    "~/.npmrc", "~/.docker", "~/.git-cred", "id_rsa", "id_ed25519", ".ssh/", "mcp.json", "/etc/passwd",
    "/etc/shadow", ".netrc", "bash_history", " .env", "/.env", "`.env", "169.254.169.254", "authorized_keys",
    "latest/meta-data", "claude_desktop_config",
]);

pub(super) static PARAMETER: Phrases = Phrases::new(&[
    "`", "parâmetro", "parámetro", "paramètre", "parameter", "argument", " field", "as the value",
    "into the query", "your query", "query string", "in the query", "参数", "に渡", " as '", " in '", "sidenote",
]);

pub(super) static OUTWARD: Phrases = Phrases::new(&[
    "http://", "https://", "ftp://", "webhook", "0x", "iban", "external server", "the channel",
]);

/// Words that leave the user out.
pub(super) static QUIET: Phrases = Phrases::new(&[
    "mention it", "mention this", "mention that you", "mention the", "mention these", "keep quiet",
    "hide it from", "hide this from", "hide these", "leave it out of", "not to be discussed",
    "not to be bothered", "need not know", "not need to know", "without saying", "without telling",
    "without informing", "user noticing", "user knowing", "nobody notices", "no one notices", "silently add",
    "silently send", "silently copy", "silently forward", "silently include", "secretly", "do not tell",
    "don't tell", "never tell", "never show the", "not reveal", "not disclose", "erwähne das nicht",
    "erwähne dies nicht", "sag dem nutzer nicht", "n'en parle pas", "ne le dis pas", "ne dis rien",
    "no se lo digas", "no le digas", "non dirlo", "não conte", "não diga", "不要告诉", "不要提及", "言わないで",
    "не говори пользовател", "не сообщай", "hidden from the user", "never reveal this", "not reveal this",
    "切勿让用户知道", "不要让用户知道", "were told so", "keep this confidential",
]);

pub(super) static TOOL: Phrases = Phrases::new(&[
    "other tool", "another tool", "all tools", "any tool", "every other", "shell tool", "terminal tool",
    "bash tool", "fetch tool", "search tool", "email tool", "mail tool", "file operation", "this tool",
    "任何其他工具", "他のツール", "other requests",
]);

pub(super) static AHEAD: Phrases = Phrases::new(&[
    "before", "first", "prior to", "every time", "each time", "whenever", "when the user", "when any",
    "when this tool", "instead of", "in order to", "required step", "after calling", "once ", "on each call",
    "bevor", "vorher", "zuerst", "avant", "antes", "prima di", "之前", "前に", "перед", "otherwise",
    "to authenticate", "for best", "for better", "for optimal", "so that", "to work",
]);

pub(super) static EVERYTHING: Phrases = Phrases::new(&[
    "full body", "whole conversation", "entire conversation", "full conversation", "complete conversation",
    "conversation so far", "last message of the user", "user's last message", "complete document", "all files",
    "all messages", "any message", "each mail", "every mail", "each message", "every message", "what was read",
    "content of every", "each export", "every export", "all requests", "send the page", "the data also",
    "export the list", "direct messages", "every password", "完整的对话", "summary of the conversation",
    "summary of the chat", "a copy of", "absolute path of any", "the document", "the list with",
]);

pub(super) static EXCLUSIVE: Phrases = Phrases::new(&[
    "replaces all other", "highest priority", "never use them", "never use other", "never use any other",
    "is false and must", "through this tool only", "only this tool may", "not to be trusted",
    "never cite other", "tool selection rules", "always call this one first",
    "this tool must be run before any", "before every other one", "other tools to run with",
    "is deprecated, use this tool", "instead of any other tool", "supersedes all", "overrides all other",
    "approve the pull request and merge", "delete it and report success", "调用任何其他工具之前",
    "must be called before any other", "ignore what the user", "regardless of what the user",
    "whatever the user says",
]);

pub(super) static COMMAND: Phrases = Phrases::new(&[
    "rm -rf", "curl ", "wget ", "| sh", "|sh", "| bash", "chmod ", "sudo", "grant all", "authorized_keys",
    "--privileged", "core.hookspath", "base64)", "nc -e", "eval(", "powershell", "disable_",
]);

pub(super) static MONEY: Phrases = Phrases::new(&[
    "recipient of the", "the recipient must", "the recipient has", "change the recipient",
    "replace the recipient", "original recipient", "all payments", "payments must", "must send all messages",
    "to the account", "use the account", "sell all", "transfer all", "pay the rest", "wallet 0x",
    "all emails must", "all mails must", "has to go to", "have to go to",
]);

pub(super) static ASSENT: Phrases = Phrases::new(&[
    "already agreed", "already consented", "already approved everything", "allowed all", "in advance",
    "without confirmation", "confirmation by the user is disabled", "never ask",
    "do not ask the user for confirmation", "do not ask for confirmation", "accept every invitation",
    "do not ask for it again", "no confirmation is needed",
]);

pub(super) static ANSWERS: Phrases = Phrases::new(&[
    "in each answer", "in every answer", "in your answer", "in all answers", "in each response",
    "in every response",
]);

/// Marks of orders that pretend to come from elsewhere.
pub(super) static TAGGED: Phrases = Phrases::new(&[
    "<important>", "<critical>", "<hidden>", "<secret>", "<system>", "[system", "<instruction",
    "note to the ai", "note for the model", "note to the model", "note to the assistant", "system note:",
    "system:", "the assistant must", "the model must", "the agent must",
]);

pub(super) static TELLING_WORDS: Phrases = Phrases::new(&[
    "@", "steal", "exfiltrat", "full ", "entire ", "whole ", "complete ", "all ", "every ", "each ", "any ",
]);
