//! The parameter of a layer that stands for several: the provider of libfabric, the transports of UCX.

use std::fmt;
use std::str::FromStr;

/// Most characters.
const ROOM: usize = 47;
/// The characters that a parameter may have besides letters and digits.
const SIGNS: &[u8] = b"_;+-.";

/// A short word of letters, digits and `_;+-.`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Parameter {
    text: [u8; ROOM],
    length: usize,
}

impl Parameter {
    /// The parameter `tcp`, which both libraries have everywhere.
    pub const TCP: Self = {
        let mut text = [0; ROOM];
        (text[0], text[1], text[2]) = (b't', b'c', b'p');
        Self { text, length: 3 }
    };

    /// Returns the parameter as it was spelled.
    pub fn as_str(&self) -> &str {
        // The text is ASCII.
        std::str::from_utf8(&self.text[..self.length]).unwrap_or_default()
    }
}

impl FromStr for Parameter {
    type Err = String;

    fn from_str(spelled: &str) -> Result<Self, String> {
        let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || SIGNS.contains(&byte);
        if spelled.is_empty() || spelled.len() > ROOM || !spelled.bytes().all(is_fit) {
            return Err(format!(
                "'{spelled}' is not a word of 1 to {ROOM} letters, digits and signs of _;+-. as in tcp"
            ));
        }
        let mut text = [0; ROOM];
        text[..spelled.len()].copy_from_slice(spelled.as_bytes());
        Ok(Self { text, length: spelled.len() })
    }
}

impl fmt::Display for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn providers_and_transports_are_parameters() {
        for text in ["tcp", "tcp;ofi_rxm", "posix+cma", "rc_mlx5", "shm"] {
            assert_eq!(text.parse::<Parameter>().map(|parameter| parameter.to_string()), Ok(text.into()));
        }
        assert_eq!("tcp".parse(), Ok(Parameter::TCP));
        for text in ["", "a,b", "a b", "a\n", "é", "a=b", &"x".repeat(ROOM + 1)] {
            assert!(text.parse::<Parameter>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_parses_is_spelled_the_same(text in ".{0,60}") {
            if let Ok(parameter) = text.parse::<Parameter>() {
                prop_assert_eq!(parameter.to_string(), text);
            }
        }
    }
}
