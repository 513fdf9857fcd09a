//! Collective calls among threads; processes are covered by `tests/`.

use std::time::{Duration, Instant};

use super::Rank;
use crate::error::{ErrorKind, Evidence};
use crate::run::Job;

const LIMIT: Duration = Duration::from_secs(20);

#[test]
fn everybody_gets_everybodys_bytes() {
    for ranks in [1, 2, 3, 5, 8] {
        let all = Job::new(ranks)
            .time_limit(LIMIT)
            .spawn(|team| {
                // Lengths differ, and the longest takes several rounds.
                let mine = vec![team.rank().0 as u8; team.rank().index() * 9_001];
                team.barrier().unwrap();
                team.allgather_bytes("exchange", &mine).unwrap()
            })
            .unwrap();
        for seen in all {
            for (rank, bytes) in seen.iter().enumerate() {
                assert_eq!(bytes.len(), rank * 9_001);
                assert!(bytes.iter().all(|&byte| byte == rank as u8));
            }
        }
    }
}

#[test]
fn a_panic_ends_the_waits_of_others() {
    let begun = Instant::now();
    let error = Job::new(3)
        .spawn(|team| {
            if team.rank() == Rank(1) {
                panic!("on purpose");
            }
            let error = team.barrier().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::PeerLost);
            assert_eq!(error.context().lost, Some(Rank(1)));
            assert_eq!(error.context().evidence, Some(Evidence::Panicked));
        })
        .unwrap_err();
    assert!(begun.elapsed() < Duration::from_secs(1));
    assert_eq!(error.context().lost, Some(Rank(1)));
    assert!(error.to_string().ends_with("on purpose"), "{error}");
}

#[test]
fn a_limit_ends_a_wait_with_a_report() {
    let reports = Job::new(2)
        .time_limit(Duration::from_millis(200))
        .spawn(|team| match team.rank() {
            Rank(0) => team.barrier().unwrap_err(),
            _ => {
                std::thread::sleep(Duration::from_millis(500));
                team.barrier().unwrap_err()
            }
        })
        .unwrap();
    assert_eq!(reports[0].kind(), ErrorKind::Stalled);
    let text = reports[0].to_string();
    assert!(text.contains("rank 0 waits in barrier since"), "{text}");
    assert!(text.contains("rank 1 does not wait"), "{text}");
    assert_eq!(reports[1].kind(), ErrorKind::PeerLost, "{}", reports[1]);
    assert_eq!(reports[1].context().evidence, Some(Evidence::Finished));
}
