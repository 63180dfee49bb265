//! Serves PMI to ranks that send any bytes, in pieces of any size. The answers do not depend on the pieces, each is one
//! line, and memory is bounded.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use netdyno_job::launching::server::{Answer, KEPT_AT_MOST, LONGEST_LINE, Server, Stop};

const PROCS: usize = 3;

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    piece: u8,
    said: Vec<(u8, &'a [u8])>,
}

fuzz_target!(|input: Input<'_>| {
    let [mut whole, mut pieces] = [0; 2].map(|_| Server::new("space".into(), PROCS));
    for (rank, bytes) in input.said {
        let rank = usize::from(rank) % PROCS;
        let at_once = whole.hear(rank, bytes);
        let in_pieces = heard(&mut pieces, rank, bytes, usize::from(input.piece) + 1);
        assert_eq!(at_once, in_pieces);
        assert!(whole.kept() <= PROCS * (KEPT_AT_MOST + LONGEST_LINE));
        let Ok(answers) = at_once else { break };
        for Answer { to, line } in answers {
            assert!(to < PROCS && line.starts_with("cmd=") && line.find('\n') == Some(line.len() - 1));
        }
    }
});

fn heard(server: &mut Server, rank: usize, bytes: &[u8], piece: usize) -> Result<Vec<Answer>, Stop> {
    let mut answers = Vec::new();
    for piece in bytes.chunks(piece) {
        answers.extend(server.hear(rank, piece)?);
    }
    Ok(answers)
}
