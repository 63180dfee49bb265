//! Matching: which receive takes which message (fi_tagged(3), fi_msg(3)).
//!
//! A message goes to the first posted receive that wants it. A receive takes the first message that it wants
//! of those that nobody wanted when they arrived, the *unexpected* messages.
//!
//! A receive may ignore some bits of the tag, and the source. Programs use few such *patterns* at a time. A receive is
//! hashed in its own pattern, an unexpected message in all that are in use:
//!
//! ```text
//! receives of a pattern      a queue for each value of the bits that count
//! unexpected messages        the same, in every pattern
//! ```
//!
//! So a search takes one look into a hash table for each pattern, however many receives or messages wait. A new pattern
//! looks at all unexpected messages once.

mod queues;

use queues::Queues;
use slab::Slab;

/// Patterns that are kept although no receive uses them. A message that nobody wants is hashed for each.
const IDLE_PATTERNS: usize = 8;

/// What a message shows to receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// The sender.
    pub source: u64,
    /// The tag. Messages without tags have 0.
    pub tag: u64,
}

/// Which messages a receive wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The sender; `None` for any.
    pub source: Option<u64>,
    /// The tag.
    pub tag: u64,
    /// The bits of the tag that do not count.
    pub ignore: u64,
}

/// Names a posted receive until it is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiveId(usize);

/// Names an unexpected message until it is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageId(usize);

/// The source and the bits of the tag that count; 0 where they do not count.
type Key = (u64, u64);

/// What receives leave out of account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pattern {
    ignore: u64,
    has_source: bool,
}

impl Pattern {
    /// Everything matches.
    const ANY: Self = Self { ignore: u64::MAX, has_source: false };

    fn of(wanted: &Wanted) -> Self {
        Self { ignore: wanted.ignore, has_source: wanted.source.is_some() }
    }

    fn key(self, source: u64, tag: u64) -> Key {
        (if self.has_source { source } else { 0 }, tag & !self.ignore)
    }
}

#[derive(Debug)]
struct Class {
    pattern: Pattern,
    /// The receives of this pattern.
    receives: Queues<Key>,
    /// All unexpected messages.
    messages: Queues<Key>,
}

#[derive(Debug)]
struct Posted<R> {
    wanted: Wanted,
    /// The number of the receive, in order.
    nth: u64,
    receive: R,
}

/// Posted receives `R` and unexpected messages `M` of one endpoint.
#[derive(Debug)]
pub struct Matcher<R, M> {
    /// The first class has the pattern [`Pattern::ANY`]; its queue of messages is in order of arrival.
    classes: Vec<Class>,
    receives: Slab<Posted<R>>,
    messages: Slab<(Envelope, M)>,
    count: u64,
}

impl<R, M> Default for Matcher<R, M> {
    fn default() -> Self {
        let any = Class { pattern: Pattern::ANY, receives: Queues::default(), messages: Queues::default() };
        Self { classes: vec![any], receives: Slab::new(), messages: Slab::new(), count: 0 }
    }
}

impl<R, M> Matcher<R, M> {
    /// Posts a receive, behind all others.
    pub fn post(&mut self, wanted: Wanted, receive: R) -> ReceiveId {
        let class = self.class(Pattern::of(&wanted));
        self.count += 1;
        let slot = self.receives.insert(Posted { wanted, nth: self.count, receive });
        let class = &mut self.classes[class];
        class.receives.push(class.pattern.key(wanted.source.unwrap_or(0), wanted.tag), slot);
        ReceiveId(slot)
    }

    /// Returns the first receive that takes a message.
    pub fn find_receive(&self, envelope: &Envelope) -> Option<ReceiveId> {
        let first_of = |class: &Class| {
            let is_used = !class.receives.is_empty();
            is_used.then(|| class.receives.first(class.pattern.key(envelope.source, envelope.tag)))?
        };
        self.classes.iter().filter_map(first_of).min_by_key(|&slot| self.receives[slot].nth).map(ReceiveId)
    }

    /// Returns the first posted receive for which `is_it` holds. Looks at all of them.
    pub fn find_receive_by(&self, is_it: impl Fn(&R) -> bool) -> Option<ReceiveId> {
        let those = self.receives.iter().filter(|(_, posted)| is_it(&posted.receive));
        those.min_by_key(|(_, posted)| posted.nth).map(|(slot, _)| ReceiveId(slot))
    }

    /// Returns a posted receive.
    pub fn receive(&mut self, ReceiveId(slot): ReceiveId) -> &mut R {
        &mut self.receives[slot].receive
    }

    /// Takes a posted receive away.
    pub fn take_receive(&mut self, ReceiveId(slot): ReceiveId) -> R {
        let Posted { wanted, receive, .. } = self.receives.remove(slot);
        let pattern = Pattern::of(&wanted);
        // The class of a posted receive is kept.
        if let Some(class) = self.classes.iter_mut().find(|class| class.pattern == pattern) {
            class.receives.remove(pattern.key(wanted.source.unwrap_or(0), wanted.tag), slot);
        }
        receive
    }

    /// Keeps a message that no receive takes, behind all others.
    pub fn keep(&mut self, envelope: Envelope, message: M) -> MessageId {
        let slot = self.messages.insert((envelope, message));
        for Class { pattern, messages, .. } in &mut self.classes {
            messages.push(pattern.key(envelope.source, envelope.tag), slot);
        }
        MessageId(slot)
    }

    /// Returns the first unexpected message that a receive would take.
    pub fn find_message(&mut self, wanted: &Wanted) -> Option<MessageId> {
        if self.messages.is_empty() {
            return None;
        }
        let class = self.class(Pattern::of(wanted));
        let Class { pattern, messages, .. } = &self.classes[class];
        messages.first(pattern.key(wanted.source.unwrap_or(0), wanted.tag)).map(MessageId)
    }

    /// Returns an unexpected message.
    pub fn message(&mut self, MessageId(slot): MessageId) -> &mut M {
        &mut self.messages[slot].1
    }

    /// Takes an unexpected message away.
    pub fn take_message(&mut self, MessageId(slot): MessageId) -> M {
        let (Envelope { source, tag }, message) = self.messages.remove(slot);
        for Class { pattern, messages, .. } in &mut self.classes {
            messages.remove(pattern.key(source, tag), slot);
        }
        message
    }

    /// Takes all unexpected messages away.
    pub fn drain_messages(&mut self) -> impl Iterator<Item = M> + '_ {
        self.classes.iter_mut().for_each(|class| class.messages = Queues::default());
        self.messages.drain().map(|(_, message)| message)
    }

    /// Returns the class of a pattern. Makes it if there is none.
    fn class(&mut self, pattern: Pattern) -> usize {
        if let Some(known) = self.classes.iter().position(|class| class.pattern == pattern) {
            return known;
        }
        self.forget_idle_classes();
        let mut messages = Queues::default();
        let all = &self.classes[0].messages;
        let mut next = all.first(Pattern::ANY.key(0, 0));
        while let Some(slot) = next {
            let (Envelope { source, tag }, _) = self.messages[slot];
            messages.push(pattern.key(source, tag), slot);
            next = all.next(slot);
        }
        self.classes.push(Class { pattern, receives: Queues::default(), messages });
        self.classes.len() - 1
    }

    /// Forgets the older classes without receives, if there are too many.
    fn forget_idle_classes(&mut self) {
        let mut idle = self.classes.iter().filter(|class| class.receives.is_empty()).count();
        let mut is_first = true;
        self.classes.retain(|class| {
            // The first class gives the order of arrival.
            let is_kept =
                std::mem::take(&mut is_first) || !class.receives.is_empty() || idle <= IDLE_PATTERNS;
            idle -= usize::from(class.receives.is_empty());
            is_kept
        });
    }
}

#[cfg(test)]
mod tests;
