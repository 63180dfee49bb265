//! The texts of commands that start ranks on other hosts.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// Characters between hosts, as of AMUDP.
const BETWEEN_HOSTS: &[char] = &[' ', '\t', '\n', '\r', ',', '/', ';', ':'];

/// A host of a list, and the character behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Host<'a> {
    pub name: &'a str,
    behind: char,
}

/// Reads a list of hosts.
pub fn hosts(list: &str) -> Vec<Host<'_>> {
    let pieces = list.split_inclusive(BETWEEN_HOSTS).map(|piece| {
        let name = piece.trim_end_matches(BETWEEN_HOSTS);
        Host { name, behind: piece[name.len()..].chars().next().unwrap_or(' ') }
    });
    pieces.filter(|host| !host.name.is_empty()).collect()
}

/// Returns the first hosts as a list with the characters between them.
pub fn first_hosts(hosts: &[Host<'_>], count: usize) -> String {
    let hosts = &hosts[..hosts.len().min(count)];
    let mut list: String = hosts.iter().flat_map(|host| host.name.chars().chain([host.behind])).collect();
    list.pop();
    list
}

/// Returns a word that a shell takes as it is.
fn quoted(word: &[u8]) -> Vec<u8> {
    let mut quoted = vec![b'\''];
    for byte in word {
        match byte {
            b'\'' => quoted.extend(br"'\''"),
            byte => quoted.push(*byte),
        }
    }
    quoted.push(b'\'');
    quoted
}

/// Returns the command line of a rank, with variables for its environment.
pub fn worker(variables: &[OsString], command: &[OsString]) -> OsString {
    let env = if variables.is_empty() { None } else { Some(b"env".to_vec()) };
    let words = variables.iter().chain(command).map(|word| quoted(word.as_bytes()));
    OsString::from_vec(env.into_iter().chain(words).collect::<Vec<_>>().join(&b' '))
}

/// Returns the command line that runs another one in a folder.
pub fn at(folder: &OsStr, command: &OsStr) -> OsString {
    let folder = quoted(folder.as_bytes());
    OsString::from_vec([b"cd ", &folder[..], b" && exec ", command.as_bytes()].concat())
}

/// Returns the line of a shell that runs a command with options, which are words of the shell, and its own arguments.
pub fn with_options(command: &OsStr, options: &OsStr) -> OsString {
    OsString::from_vec([b"exec ", command.as_bytes(), b" ", options.as_bytes(), b" \"$@\""].concat())
}

/// What stands for the letters behind `%` in a command of the user.
pub struct Parts {
    pub ranks: usize,
    pub hosts: String,
    pub command: OsString,
    pub program: OsString,
    pub folder: OsString,
}

impl Parts {
    /// Fills a command of the user. A letter that is none stands for nothing, as in AMUDP.
    pub fn fill(&self, pattern: &[u8]) -> Vec<u8> {
        let mut filled = Vec::new();
        let mut bytes = pattern.iter();
        while let Some(byte) = bytes.next() {
            if *byte != b'%' {
                filled.push(*byte);
                continue;
            }
            match bytes.next().map(u8::to_ascii_uppercase) {
                Some(b'N') => filled.extend(self.ranks.to_string().bytes()),
                Some(b'M') => filled.extend(self.hosts.bytes()),
                Some(b'C') => filled.extend(self.command.as_bytes()),
                Some(b'P') => filled.extend(self.program.as_bytes()),
                Some(b'D') => filled.extend(self.folder.as_bytes()),
                Some(b'%') => filled.push(b'%'),
                _ => {}
            }
        }
        filled
    }
}

/// Reports whether a command of the user names hosts.
pub fn needs_hosts(pattern: &[u8]) -> bool {
    let mut bytes = pattern.iter();
    while let Some(byte) = bytes.next() {
        if *byte == b'%' && matches!(bytes.next(), Some(b'M' | b'm')) {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::process::Command;

    #[test]
    fn hosts_are_read_and_listed() {
        let read = |list| -> Vec<&str> { hosts(list).iter().map(|host| host.name).collect() };
        assert_eq!(read(" a, b;c/d:e\tf\n"), ["a", "b", "c", "d", "e", "f"]);
        assert!(read(" ,; ").is_empty() && read("").is_empty());
        assert_eq!(first_hosts(&hosts("a,b,c"), 2), "a,b");
        assert_eq!(first_hosts(&hosts("a b"), 5), "a b");
        assert_eq!(first_hosts(&hosts("a;"), 1), "a");
        assert_eq!(first_hosts(&[], 1), "");
    }

    #[test]
    fn a_command_of_the_user_is_filled() {
        let parts = Parts {
            ranks: 3,
            hosts: "a,b".into(),
            command: "'x' 'y%N'".into(),
            program: "x".into(),
            folder: "/tmp".into(),
        };
        let filled = |pattern: &str| String::from_utf8(parts.fill(pattern.as_bytes())).unwrap();
        assert_eq!(filled("run -n %N -h %m %C"), "run -n 3 -h a,b 'x' 'y%N'");
        assert_eq!(filled("%D %P %% %x|%"), "/tmp x % |");
        assert!(needs_hosts(b"a %M") && !needs_hosts(b"a %%M %N %"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// A shell gives a program the very words.
        #[test]
        fn words_come_through_a_shell(words in proptest::collection::vec("[^\0]{0,12}", 1..5)) {
            let words: Vec<OsString> = words.into_iter().map(OsString::from).collect();
            let printf = ["printf".into(), "%s\\0".into()];
            let line = at("/".as_ref(), &worker(&[], &[&printf[..], &words].concat()));
            let output = Command::new("sh").arg("-c").arg(line).output().unwrap();
            let mut expected = words.join("\0".as_ref()).into_vec();
            expected.push(0);
            prop_assert_eq!(output.stdout, expected);
        }
    }
}
