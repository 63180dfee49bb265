use super::*;
use proptest::prelude::*;

impl Wanted {
    fn takes(&self, envelope: &Envelope) -> bool {
        self.source.is_none_or(|source| source == envelope.source)
            && (self.tag ^ envelope.tag) & !self.ignore == 0
    }
}

/// The rule of the manual, word for word: lists that are searched from their beginnings.
#[derive(Default)]
struct Lists {
    receives: Vec<(Wanted, u32)>,
    messages: Vec<(Envelope, u32)>,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    /// A receive takes an unexpected message, or is posted.
    Receive(Wanted),
    /// A message goes to a posted receive, or is kept.
    Arrive(Envelope),
    /// A receive looks for a message and leaves it.
    Peek(Wanted),
    /// The posted receive at this place of the list is cancelled.
    Cancel(usize),
}

fn envelope() -> impl Strategy<Value = Envelope> {
    (0..3_u64, 0..4_u64).prop_map(|(source, tag)| Envelope { source, tag })
}

fn wanted() -> impl Strategy<Value = Wanted> {
    let ignore = prop_oneof![4 => Just(0), 2 => Just(u64::MAX), 1 => 0..4_u64, 1 => any::<u64>()];
    (proptest::option::of(0..3_u64), 0..4_u64, ignore).prop_map(|(source, tag, ignore)| Wanted {
        source,
        tag,
        ignore,
    })
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => wanted().prop_map(Step::Receive),
        4 => envelope().prop_map(Step::Arrive),
        1 => wanted().prop_map(Step::Peek),
        1 => (0..8_usize).prop_map(Step::Cancel),
    ]
}

proptest! {
    #[test]
    fn it_matches_as_lists_do(steps in proptest::collection::vec(step(), 0..400)) {
        let (mut lists, mut matcher) = (Lists::default(), Matcher::<u32, u32>::default());
        for (n, step) in (0_u32..).zip(steps) {
            match step {
                Step::Receive(wanted) => {
                    let place = lists.messages.iter().position(|(envelope, _)| wanted.takes(envelope));
                    let found = matcher.find_message(&wanted);
                    prop_assert_eq!(place.is_some(), found.is_some());
                    if let (Some(place), Some(found)) = (place, found) {
                        prop_assert_eq!(lists.messages.remove(place).1, matcher.take_message(found));
                    } else {
                        lists.receives.push((wanted, n));
                        matcher.post(wanted, n);
                    }
                }
                Step::Arrive(envelope) => {
                    let place = lists.receives.iter().position(|(wanted, _)| wanted.takes(&envelope));
                    let found = matcher.find_receive(&envelope);
                    prop_assert_eq!(place.is_some(), found.is_some());
                    if let (Some(place), Some(found)) = (place, found) {
                        prop_assert_eq!(lists.receives.remove(place).1, matcher.take_receive(found));
                    } else {
                        lists.messages.push((envelope, n));
                        matcher.keep(envelope, n);
                    }
                }
                Step::Peek(wanted) => {
                    let expected = lists.messages.iter().find(|(envelope, _)| wanted.takes(envelope));
                    let found = matcher.find_message(&wanted).map(|id| *matcher.message(id));
                    prop_assert_eq!(expected.map(|(_, message)| *message), found);
                }
                Step::Cancel(place) => {
                    let Some(&(_, receive)) = lists.receives.get(place) else { continue };
                    lists.receives.remove(place);
                    let found = matcher.find_receive_by(|posted| *posted == receive);
                    prop_assert_eq!(found.map(|id| matcher.take_receive(id)), Some(receive));
                }
            }
            prop_assert_eq!(matcher.receives.len(), lists.receives.len());
            prop_assert_eq!(matcher.messages.len(), lists.messages.len());
        }
    }
}

/// A program may try any number of masks.
#[test]
fn masks_that_no_receive_uses_are_forgotten() {
    let mut matcher = Matcher::<(), u64>::default();
    for tag in 0..100 {
        matcher.keep(Envelope { source: 0, tag }, tag);
    }
    for ignore in 0..1000 {
        let found = matcher.find_message(&Wanted { source: None, tag: 99, ignore });
        let first = (0..100).find(|tag| (tag ^ 99) & !ignore == 0);
        assert_eq!(found.map(|id| *matcher.message(id)), first);
    }
    assert!(matcher.classes.len() <= IDLE_PATTERNS + 2);
}
