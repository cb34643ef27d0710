//! The stable fuzzer on decoders with known mistakes: a fuzzer that has never found anything is not known to work.

use std::path::Path;
use std::time::Duration;

use leasehold_fuzz::driver::{Failure, run, run_one};
use leasehold_fuzz::mutate::{MAX_INPUT_BYTES, mutate};
use leasehold_fuzz::random::Random;
use leasehold_fuzz::{Shape, Target};

/// Much longer than any of these takes.
const TIME: Duration = Duration::from_secs(20);

fn found(target: &'static Target, seed: u64) -> Box<Failure> {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("planted");
    run(target, seed, TIME, &directory).expect_err("the mistake is found")
}

fn seeds() -> Vec<Vec<u8>> {
    vec![b"LH\x01\x04\x00\x00\x00body".to_vec()]
}

/// A version, a length and a body of that length.
fn parse(input: &[u8]) -> Result<(u8, usize, &[u8]), &'static str> {
    let [b'L', b'H', version, rest @ ..] = input else { return Err("no magic") };
    let Some((length, body)) = rest.split_first_chunk::<4>() else { return Err("no length") };
    Ok((*version, u32::from_le_bytes(*length) as usize, body))
}

static SLICES: Target = Target {
    name: "planted-slice",
    what: "a length that is not compared with what is there",
    seeds,
    check: |input| {
        let read = parse(input).map(|(_, length, body)| &body[..length]);
        Shape::of(&read)
    },
};

#[test]
fn a_length_that_is_believed_is_found_and_its_input_made_small() {
    let failure = found(&SLICES, 1);
    assert!(failure.why.contains("out of range"), "{failure}");
    assert!(failure.input.len() < 11, "{failure}");
    assert_eq!(std::fs::read(failure.file.as_ref().unwrap()).unwrap(), failure.input);
    run_one(&SLICES, &failure.input).expect_err("the input that was written down fails again");
    run_one(&SLICES, &seeds()[0]).expect("a seed does not fail");
}

static RESERVES: Target = Target {
    name: "planted-memory",
    what: "memory that is reserved on the word of a length",
    seeds,
    check: |input| {
        let reserved =
            parse(input).map(|(_, length, _)| Vec::<u8>::with_capacity(length.min(1 << 30)).capacity());
        Shape::of(&reserved.is_ok())
    },
};

#[test]
fn memory_without_bound_is_found() {
    let failure = found(&RESERVES, 2);
    assert!(failure.why.contains("bytes of memory are above the maximum"), "{failure}");
}

static FORGETS: Target = Target {
    name: "planted-round-trip",
    what: "an encoder that loses what only later versions have",
    seeds,
    check: |input| {
        let read = parse(input).map(|(version, _, body)| (version, body.to_vec()));
        if let Ok((version, body)) = &read {
            let written = [&b"LH\x01"[..], &[0; 4], body].concat();
            let again = parse(&written).map(|(version, _, body)| (version, body.to_vec()));
            assert_eq!(again, Ok((*version, body.clone())), "it comes out as another");
        }
        Shape::of(&read)
    },
};

#[test]
fn a_value_that_comes_out_as_another_is_found() {
    assert!(found(&FORGETS, 3).why.contains("it comes out as another"));
}

static ELSEWHERE: Target = Target {
    name: "planted-thread",
    what: "a panic in a thread that nobody waits for",
    seeds,
    check: |input| {
        let version = parse(input).map(|(version, ..)| version);
        let thread = std::thread::spawn(move || assert_ne!(version, Ok(0x80), "a version that nobody knows"));
        Shape::of(&thread.join().is_ok())
    },
};

#[test]
fn a_panic_of_another_thread_is_found() {
    assert!(found(&ELSEWHERE, 4).why.contains("a version that nobody knows"));
}

static DEEP: Target = Target {
    name: "planted-deep",
    what: "a mistake behind four right bytes, each of which comes to something new",
    seeds: || vec![vec![0; 4]],
    check: |input| {
        let right = input.iter().zip(b"deep").take_while(|(found, wanted)| found == wanted).count();
        assert!(right < 4, "all four");
        Shape::of(&vec![(); right])
    },
};

#[test]
fn what_came_to_something_new_is_built_upon() {
    assert!(found(&DEEP, 5).why.contains("all four"));
}

#[test]
fn the_same_seed_makes_the_same_inputs() {
    let inputs = |seed: u64| {
        let mut random = Random::new(seed);
        let mut input = seeds()[0].clone();
        let next = |_| {
            input = mutate(&mut random, &input, &seeds());
            input.clone()
        };
        (0..500).map(next).collect::<Vec<_>>()
    };
    assert_eq!(inputs(7), inputs(7));
    assert_ne!(inputs(7), inputs(8));
    assert!(inputs(7).iter().all(|input| input.len() <= MAX_INPUT_BYTES));
}

#[test]
fn inputs_grow_shrink_and_change() {
    let mut random = Random::new(9);
    let seed = seeds().remove(0);
    let changed: Vec<Vec<u8>> = (0..2_000).map(|_| mutate(&mut random, &seed, &seeds())).collect();
    assert!(changed.iter().any(|input| input.len() > seed.len()));
    assert!(changed.iter().any(|input| input.len() < seed.len()));
    assert!(changed.iter().any(|input| input.len() == seed.len() && *input != seed));
    // Nothing to change and nobody to lend.
    (0..500).for_each(|_| drop(mutate(&mut random, &[], &[])));
}

static SLOW: Target = Target {
    name: "planted-slow",
    what: "a decoder that takes five milliseconds for whatever it is given",
    seeds,
    check: |input| {
        std::thread::sleep(Duration::from_millis(5));
        Shape::of(&input.len())
    },
};

static QUICK: Target = Target {
    name: "planted-quick",
    what: "a decoder without mistakes",
    seeds,
    check: |input| Shape::of(&parse(input)),
};

#[test]
fn a_run_that_tried_few_inputs_goes_on_for_a_while_and_then_says_so() {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("planted");
    let slow = run(&SLOW, 1, Duration::from_millis(20), &directory).expect("there is no mistake");
    assert!(slow.is_few() && slow.took >= Duration::from_millis(200), "{slow}");
    assert!(slow.to_string().contains("fewer than 200 inputs show nothing"), "{slow}");
    let quick = run(&QUICK, 1, TIME / 40, &directory).expect("there is no mistake");
    assert!(!quick.is_few(), "{quick}");
    assert!(!quick.to_string().contains("fewer"), "{quick}");
}
