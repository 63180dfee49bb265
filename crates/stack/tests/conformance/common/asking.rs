//! Handlers of numbered requests. Some count and check the order, others keep the numbers.

use netdyno_stack::am::Handlers;

/// Handlers of requests with a reply, and without.
pub const ASK: u8 = 0;
pub const TELL: u8 = 1;

/// Counts of arrivals. The handlers check that each arrives once and in order.
#[derive(Default)]
pub struct Counted {
    pub requests: u64,
    pub replies: u64,
}

pub fn counting() -> Handlers<Counted> {
    let mut handlers = Handlers::new();
    handlers.on_request(ASK, |seen: &mut Counted, request| {
        let [n, ..] = request.words();
        assert_eq!(n, seen.requests);
        seen.requests += 1;
        request.reply(ASK, [n]);
    });
    handlers.on_reply(ASK, |seen: &mut Counted, reply| {
        assert_eq!(reply.words()[0], seen.replies);
        seen.replies += 1;
    });
    handlers
}

/// The numbers of arrivals, in the order of arrival.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Kept {
    pub requests: Vec<u64>,
    pub replies: Vec<u64>,
}

pub fn keeping() -> Handlers<Kept> {
    let mut handlers = Handlers::new();
    handlers.on_request(ASK, |seen: &mut Kept, request| {
        let [n, ..] = request.words();
        seen.requests.push(n);
        request.reply(ASK, [n]);
    });
    handlers.on_request(TELL, |seen: &mut Kept, request| seen.requests.push(request.words()[0]));
    handlers.on_reply(ASK, |seen: &mut Kept, reply| seen.replies.push(reply.words()[0]));
    handlers
}
