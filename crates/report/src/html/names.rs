//! Names of layers, side by side and in sentences.

/// A sentence names at most this many layers.
pub const NAMED_AT_MOST: usize = 4;

/// Returns the names, each with a number if it occurs more than once.
pub fn numbered(names: &[String]) -> Vec<String> {
    let count = |names: &[String], name: &String| names.iter().filter(|other| *other == name).count();
    let numbered = |(at, name): (usize, &String)| match count(names, name) {
        1 => name.clone(),
        _ => format!("{name} #{}", count(&names[..=at], name)),
    };
    names.iter().enumerate().map(numbered).collect()
}

/// Returns the names as `a, b and c`.
pub fn listed(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_end_with_and() {
        let list = |names: &[&str]| listed(&names.iter().map(|name| (*name).into()).collect::<Vec<_>>());
        assert_eq!(
            (list(&[]), list(&["a"]), list(&["a", "b", "c"])),
            ("".into(), "a".into(), "a, b and c".into())
        );
    }
}
