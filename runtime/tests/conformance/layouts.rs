//! Datatypes on either side, structures as elements, against a reference that knows bytes only.
//!
//! The reference lists for each item where its bytes lie. It is built beside the datatype from the definitions of the
//! constructors, and copies byte by byte.

use rma::{
    BasicType, Bool, Datatype, Element, ErrorKind, LockKind, NoOp, Rank, Replace, Strided, Sum, Team, Window,
    WindowOptions, own, strided_mut, typed, typed_mut,
};

use crate::{Case, Outcome, case, kind_of};

pub(crate) const CASES: &[Case] = &[
    case!(a_row_becomes_a_column, [1, 2]),
    case!(layouts_move_the_bytes_that_a_map_says, [1, 2]),
    case!(sides_must_agree_in_basic_types, [2]),
    case!(fields_are_hit_and_padding_is_not, [2]),
    case!(typed_layouts_that_overlap_are_refused, [1, 2]),
    case!(typed_layouts_stay_in_bounds, [2]),
    case!(a_scatter_add_is_one_accumulate, [1, 4]),
    case!(structures_are_elements, [1, 3]),
    case!(any_byte_is_a_truth_value, [2]),
    case!(datatypes_travel_as_bytes, [2, 6]),
    case!(element_types_must_agree, [2]),
];

#[derive(Clone, Copy, Debug, PartialEq, Element)]
#[element(padded)]
#[repr(C)]
struct Padded {
    small: i32,
    large: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Element)]
#[repr(C)]
struct Triple {
    first: u64,
    second: [f32; 2],
    third: u32,
    flag: Bool,
    unused: [u8; 3],
}

// covers: RMA-COMM-05
fn a_row_becomes_a_column(team: &Team) -> Outcome {
    let mut window = Window::<f64>::allocate(team, 100)?;
    let target = Rank(team.size() - 1);
    let row: Vec<f64> = (1..=8).map(f64::from).collect();
    let column = Datatype::of::<f64>().vector(8, 1, 10)?;
    let picked = Datatype::of::<f64>().indexed(&[6..8, 0..1, 3..4])?;
    let corner = Datatype::of::<f64>().subarray(&[10, 10], &[8..10, 7..10])?;
    window.fence(|epoch| match team.rank() {
        Rank(0) => {
            epoch.put(target, (3, &column), &row)?;
            epoch.put(target, (90, &Datatype::of::<f64>().contiguous(4)?), typed(&row, &picked))?;
            epoch.put(target, (0, &corner), typed(&row, &Datatype::of::<f64>().contiguous(6)?))
        }
        _ => Ok(()),
    })?;
    let mut back = [0.0; 6];
    window.fence(|epoch| epoch.get(target, (0, &corner), &mut back))?;
    assert_eq!(back, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    if team.rank() == target {
        let local = window.local()?;
        let mut expected = vec![0.0; 100];
        for at in 0..8 {
            expected[3 + 10 * at] = (at + 1) as f64;
        }
        expected[90..94].copy_from_slice(&[7.0, 8.0, 1.0, 4.0]);
        expected[87..90].copy_from_slice(&[1.0, 2.0, 3.0]);
        expected[97..100].copy_from_slice(&[4.0, 5.0, 6.0]);
        assert_eq!(*local, expected[..]);
    }
    // The same sequence of basic types is needed, whatever the layouts.
    window.fence(|epoch| {
        let integers = Datatype::of::<i64>().contiguous(8)?;
        assert_eq!(
            kind_of(epoch.put(target, (3, &column), typed(&[0_i64; 8], &integers))),
            ErrorKind::DatatypeMismatch
        );
        assert_eq!(kind_of(epoch.put(target, (3, &column), &row[..7])), ErrorKind::LengthMismatch);
        Ok(())
    })?;
    Ok(())
}

/// A generator of the same numbers on every rank.
struct Random(u64);

impl Random {
    /// A small count, seldom zero, which would make all that is built on it empty.
    fn count(&mut self) -> usize {
        if self.below(16) == 0 { 0 } else { 1 + self.below(3) }
    }

    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }
}

/// What the reference knows: where each item begins, in the order in which they travel, and its basic type.
#[derive(Clone, Debug)]
struct Map {
    items: Vec<(usize, BasicType)>,
    extent: usize,
}

impl Map {
    fn shifted(&self, by: usize) -> impl Iterator<Item = (usize, BasicType)> + '_ {
        self.items.iter().map(move |&(at, basic)| (at + by, basic))
    }

    fn bytes(&self) -> Vec<usize> {
        self.items.iter().flat_map(|&(at, basic)| at..at + basic.size()).collect()
    }

    fn reach(&self) -> usize {
        self.bytes().into_iter().max().map_or(0, |last| last + 1)
    }

    fn overlaps(&self) -> bool {
        let mut bytes = self.bytes();
        let all = bytes.len();
        bytes.sort_unstable();
        bytes.dedup();
        bytes.len() != all
    }
}

fn basic(basic: BasicType) -> Datatype {
    match basic {
        BasicType::U8 => Datatype::of::<u8>(),
        BasicType::I16 => Datatype::of::<i16>(),
        BasicType::U32 => Datatype::of::<u32>(),
        _ => Datatype::of::<f64>(),
    }
}

/// A datatype and the map of the same, grown together.
fn grow(random: &mut Random, depth: usize) -> rma::Result<(Datatype, Map)> {
    if depth == 0 {
        let kind = [BasicType::U8, BasicType::I16, BasicType::U32, BasicType::F64][random.below(4)];
        return Ok((basic(kind), Map { items: vec![(0, kind)], extent: kind.size() }));
    }
    let (inner, map) = grow(random, depth - 1)?;
    let step = map.extent;
    let at = |starts: Vec<usize>, extent| Map {
        items: starts.iter().flat_map(|&start| map.shifted(start).collect::<Vec<_>>()).collect(),
        extent,
    };
    Ok(match random.below(6) {
        0 => {
            let count = random.count();
            (inner.contiguous(count)?, at((0..count).map(|i| i * step).collect(), count * step))
        }
        1 => {
            let (count, block, stride) = (random.count(), random.count(), random.below(5));
            let starts = (0..count).flat_map(|i| (0..block).map(move |j| (i * stride + j) * step)).collect();
            let extent = if count * block == 0 { 0 } else { ((count - 1) * stride + block) * step };
            (inner.vector(count, block, stride)?, at(starts, extent))
        }
        2 => {
            let ranges: Vec<_> = (0..random.count())
                .map(|_| {
                    let start = random.below(6);
                    start..start + random.count()
                })
                .collect();
            let starts = ranges.iter().cloned().flatten().map(|i| i * step).collect();
            let extent = ranges.iter().map(|range| range.end).max().unwrap_or(0) * step;
            (inner.indexed(&ranges)?, at(starts, extent))
        }
        3 => {
            let sizes = [1 + random.below(3), 1 + random.below(3), 1 + random.below(4)];
            let part = sizes.map(|size| {
                let start = random.below(size);
                start..start + 1 + random.below(size - start)
            });
            let mut starts = Vec::new();
            for i in part[0].clone() {
                for j in part[1].clone() {
                    for k in part[2].clone() {
                        starts.push(((i * sizes[1] + j) * sizes[2] + k) * step);
                    }
                }
            }
            (inner.subarray(&sizes, &part)?, at(starts, sizes.iter().product::<usize>() * step))
        }
        4 => {
            let (other, other_map) = grow(random, depth - 1)?;
            let (first, second) = (random.below(16), random.below(48));
            let items = map.shifted(first).chain(other_map.shifted(second)).collect();
            let extent = (first + map.extent).max(second + other_map.extent);
            (Datatype::structure(&[(first, inner), (second, other)])?, Map { items, extent })
        }
        _ => {
            let extent = map.extent + random.below(5);
            (inner.resized(extent)?, Map { extent, ..map })
        }
    })
}

/// Another layout of the same sequence of types: ascending, with random gaps.
fn scatter(random: &mut Random, map: &Map) -> rma::Result<(Datatype, Map)> {
    let (mut end, mut items) = (0, Vec::new());
    for &(_, kind) in &map.items {
        end += random.below(3);
        items.push((end, kind));
        end += kind.size();
    }
    let parts: Vec<_> = items.iter().map(|&(at, kind)| (at, basic(kind))).collect();
    Ok((Datatype::structure(&parts)?, Map { items, extent: end }))
}

/// Copies item by item, byte by byte.
fn copy(to: &mut [u8], to_map: &Map, at: usize, from: &[u8], from_map: &Map, from_at: usize) {
    for (&(to_start, kind), &(from_start, _)) in to_map.items.iter().zip(&from_map.items) {
        for byte in 0..kind.size() {
            to[at + to_start + byte] = from[from_at + from_start + byte];
        }
    }
}

fn layouts_move_the_bytes_that_a_map_says(team: &Team) -> Outcome {
    const LEN: usize = 4096;
    const UNIT: usize = 3;
    let mut window = WindowOptions::new().disp_unit(UNIT).allocate::<u8>(team, LEN)?;
    let target = Rank(team.size() - 1);
    let mut random = Random(7);
    let filled: Vec<u8> = (0..LEN).map(|at| (at * 31 % 251) as u8).collect();
    let (mut puts, mut refused, mut gets, mut items) = (0, 0, 0, 0);
    for round in 0..150 {
        let depth = round % 5;
        let (there, there_map) = grow(&mut random, depth)?;
        let (here, here_map) = scatter(&mut random, &there_map)?;
        assert_eq!(
            (there.items(), there.extent()),
            (there_map.items.len(), there_map.extent),
            "round {round}"
        );
        if LEN < there_map.reach() + 3 * UNIT {
            continue;
        }
        let buffer: Vec<u8> = (0..here_map.extent).map(|at| (at * 7 + round) as u8 | 1).collect();
        window.local_mut()?.copy_from_slice(&filled);
        let mut expected = filled.clone();
        let overlaps = there_map.overlaps();
        let outcome = window.fence(|epoch| match team.rank() {
            Rank(0) => rma::Plain(Some(epoch.put(target, (2, &there), typed(&buffer, &here)))),
            _ => rma::Plain(None),
        })?;
        match outcome {
            Some(outcome) if overlaps => {
                assert_eq!(kind_of(outcome), ErrorKind::OverlappingLayout, "{there_map:?}")
            }
            Some(outcome) => outcome?,
            None => {}
        }
        match overlaps {
            true => refused += 1,
            false => {
                puts += 1;
                copy(&mut expected, &there_map, 2 * UNIT, &buffer, &here_map, 0);
            }
        }
        if team.rank() == target {
            assert!(*window.local()? == expected[..], "round {round}: {there_map:?}");
        }
        // A get may read a byte often.
        let mut back = vec![0xee; here_map.extent];
        let mut expected_back = back.clone();
        copy(&mut expected_back, &here_map, 0, &expected, &there_map, 2 * UNIT);
        window.fence(|epoch| epoch.get(target, (2, &there), typed_mut(&mut back, &here)))?;
        assert_eq!(back, expected_back, "round {round}: {there_map:?}");
        gets += 1;
        items += there.items();
        // The same into the own window, past the part that others read, where there is room.
        let far = (LEN / 2).div_ceil(UNIT);
        if there_map.reach() + 2 * UNIT < far * UNIT && far * UNIT + here_map.extent < LEN {
            window.fence(|epoch| epoch.get(target, (2, &there), own((far, &here))))?;
            let mut copied = expected[far * UNIT..][..here_map.extent].to_vec();
            if team.rank() != target {
                copied.copy_from_slice(&filled[far * UNIT..][..here_map.extent]);
            }
            copy(&mut copied, &here_map, 0, &expected, &there_map, 2 * UNIT);
            assert_eq!(window.local()?[far * UNIT..][..here_map.extent], copied, "round {round}");
        }
    }
    assert!(puts > 50 && refused > 20 && gets > 100, "{puts} puts, {refused} refused, {gets} gets");
    assert!(1000 < items, "the layouts have {items} items only");
    Ok(())
}

fn sides_must_agree_in_basic_types(team: &Team) -> Outcome {
    let mut window = Window::<u8>::allocate(team, 64)?;
    let pair = Datatype::structure(&[(0, Datatype::of::<i32>()), (8, Datatype::of::<f64>())])?;
    let swapped = Datatype::structure(&[(8, Datatype::of::<i32>()), (0, Datatype::of::<f64>())])?;
    let turned = Datatype::structure(&[(0, Datatype::of::<f64>()), (8, Datatype::of::<i32>())])?;
    let origin = [0x55_u8; 32];
    let mut into = [0_u8; 32];
    window.fence(|epoch| {
        let there = pair.contiguous(2)?;
        // Where the items lie may differ, their sequence may not.
        epoch.put(Rank(0), (0, &there), typed(&origin, &swapped.contiguous(2)?))?;
        let error = epoch
            .put(Rank(1), (0, &there), typed(&origin, &turned.contiguous(2)?))
            .expect_err("the order differs");
        assert_eq!(error.kind(), ErrorKind::DatatypeMismatch);
        assert!(error.to_string().contains("item 0 is i32 at the target and f64 at the origin"), "{error}");
        assert_eq!(
            kind_of(epoch.put(Rank(1), (0, &there), typed(&origin, &pair))),
            ErrorKind::LengthMismatch
        );
        let nothing = pair.contiguous(0)?;
        assert_eq!(
            kind_of(epoch.put(Rank(1), (0, &there), typed(&origin, &nothing))),
            ErrorKind::LengthMismatch
        );
        epoch.put(Rank(1), (64, &nothing), typed(&origin, &nothing))?;
        // Bytes are no numbers, and elements of the window are compared like any other side.
        assert_eq!(kind_of(epoch.put(Rank(1), (0, &there), &origin[..24])), ErrorKind::DatatypeMismatch);
        assert_eq!(
            kind_of(epoch.get(Rank(1), 0..24, typed_mut(&mut into, &pair))),
            ErrorKind::DatatypeMismatch
        );
        assert_eq!(
            kind_of(epoch.accumulate(Rank(1), (0, &pair), Sum, typed(&origin, &pair))),
            ErrorKind::DatatypeMismatch
        );
        Ok(())
    })?;
    if team.rank() == Rank(1) {
        assert!(window.local()?.iter().all(|&byte| byte == 0), "nothing has moved");
    }
    Ok(())
}

// covers: RMA-COMM-06
fn fields_are_hit_and_padding_is_not(team: &Team) -> Outcome {
    let values = [Padded { small: -2, large: 0.5 }, Padded { small: 77, large: -1e300 }];
    let mut fields = vec![0xcc_u8; 64];
    for (at, value) in values.iter().enumerate() {
        fields[24 + 16 * at..][..4].copy_from_slice(&value.small.to_ne_bytes());
        fields[32 + 16 * at..][..8].copy_from_slice(&value.large.to_ne_bytes());
    }
    // By a datatype, in a window of bytes whose unit is 4.
    let mut window = WindowOptions::new().disp_unit(4).allocate::<u8>(team, 64)?;
    window.local_mut()?.fill(0xcc);
    let pair = Datatype::structure(&[(0, Datatype::of::<i32>()), (8, Datatype::of::<f64>())])?;
    let two = pair.contiguous(2)?;
    window.fence(|epoch| match team.rank() {
        Rank(0) => epoch.put(Rank(1), (6, &two), typed(&values, &two)),
        _ => Ok(()),
    })?;
    if team.rank() == Rank(1) {
        assert_eq!(*window.local()?, fields[..]);
    }
    // By an element type: put, get, store and replace leave padding alone.
    let mut window = WindowOptions::new().disp_unit(4).allocate::<Padded>(team, 4)?;
    let bytes = Datatype::of::<u8>().contiguous(64)?;
    window.fence(|epoch| epoch.put(team.rank(), (0, &bytes), typed(&[0xcc_u8; 64], &bytes)))?;
    let mut got = values;
    got.reverse();
    window.fence(|epoch| match team.rank() {
        Rank(0) => epoch.put(Rank(1), 6, &values),
        _ => Ok(()),
    })?;
    window.fence(|epoch| epoch.get(Rank(1), 6, &mut got))?;
    assert_eq!(got, values);
    let mut raw = [0_u8; 64];
    window.fence(|epoch| epoch.get(Rank(1), (0, &bytes), typed_mut(&mut raw, &bytes)))?;
    assert_eq!(raw[..], fields);
    window.fence(|epoch| match team.rank() {
        Rank(0) => epoch.accumulate(Rank(1), 6, Replace, [values[1]]),
        _ => Ok(()),
    })?;
    if team.rank() == Rank(1) {
        window.store(0, values[0])?;
    }
    fields.copy_within(40..44, 24);
    fields.copy_within(48..56, 32);
    fields[..4].copy_from_slice(&values[0].small.to_ne_bytes());
    fields[8..16].copy_from_slice(&values[0].large.to_ne_bytes());
    window.fence(|epoch| epoch.get(Rank(1), (0, &bytes), typed_mut(&mut raw, &bytes)))?;
    assert_eq!(raw[..], fields);
    // Padding is nothing to send.
    window.fence(|epoch| {
        let all = Datatype::of::<u8>().contiguous(16)?;
        assert_eq!(kind_of(epoch.put(Rank(0), (0, &all), typed(&values, &all))), ErrorKind::DatatypeMismatch);
        Ok(())
    })?;
    Ok(())
}

// covers: RMA-COMM-08
fn typed_layouts_that_overlap_are_refused(team: &Team) -> Outcome {
    let mut window = Window::<u16>::allocate(team, 16)?;
    window.local_mut()?[3] = 9;
    let target = Rank(team.size() - 1);
    let number = Datatype::of::<u16>();
    let four = number.contiguous(4)?;
    let mut into = [0_u16; 4];
    window.fence(|epoch| {
        for twice in [
            number.vector(4, 1, 0)?,
            number.vector(2, 2, 1)?,
            number.indexed(&[0..2, 5..6, 1..2])?,
            number.indexed(&[1..2, 0..1, 1..2, 5..6])?,
            Datatype::structure(&[(0, number.clone()), (1, number.clone()), (4, number.contiguous(2)?)])?,
            number.vector(2, 1, 1)?.vector(2, 1, 0)?,
            number.resized(1)?.contiguous(4)?,
        ] {
            assert_eq!(kind_of(epoch.put(target, (3, &twice), &[1; 4])), ErrorKind::OverlappingLayout);
            assert_eq!(
                kind_of(epoch.accumulate(target, (3, &twice), Sum, &[1; 4])),
                ErrorKind::OverlappingLayout
            );
            // An origin that is read may name a byte twice.
            epoch.put(target, (8, &four), typed(&[7_u16; 8], &twice))?;
        }
        // These interleave, and name no byte twice.
        for once in
            [number.vector(2, 1, 2)?.resized(2)?.contiguous(2)?, number.indexed(&[3..4, 0..1, 2..3, 1..2])?]
        {
            epoch.put(target, (8, &once), &[7; 4])?;
        }
        epoch.get(target, (3, &number.vector(4, 1, 0)?), &mut into)
    })?;
    assert_eq!(into, [9; 4]);
    let twice = number.vector(4, 1, 0)?;
    let mut one = [5_u16; 1];
    let outcome = window.fence(|epoch| epoch.get(target, 0..4, typed_mut(&mut one, &twice)));
    assert_eq!(kind_of(outcome), ErrorKind::OverlappingLayout);
    assert_eq!(one, [5]);
    let local = window.local()?;
    let sum: u32 = local.iter().map(|&value| u32::from(value)).sum();
    assert_eq!(sum, if team.rank() == target { 9 + 4 * 7 } else { 9 }, "{local:?}");
    Ok(())
}

// covers: RMA-COMM-07
fn typed_layouts_stay_in_bounds(team: &Team) -> Outcome {
    let mut window = Window::<u64>::allocate(team, 8)?;
    let number = Datatype::of::<u64>();
    let two = number.vector(2, 1, 3)?;
    let mut buffer = [0_u64; 3];
    assert_eq!(kind_of(number.vector(2, 1, usize::MAX / 8)), ErrorKind::OutOfBounds);
    assert_eq!(kind_of(number.contiguous(usize::MAX)), ErrorKind::OutOfBounds);
    assert_eq!(
        kind_of(number.indexed(std::slice::from_ref(&(usize::MAX - 1..usize::MAX)))),
        ErrorKind::OutOfBounds
    );
    assert_eq!(kind_of(number.subarray(&[4, 4], &[0..4, 2..5])), ErrorKind::OutOfBounds);
    assert_eq!(kind_of(number.subarray(&[4, 4], std::slice::from_ref(&(0..4)))), ErrorKind::LengthMismatch);
    window.fence(|epoch| {
        epoch.put(Rank(1), (4, &two), &[1, 2])?;
        for at in [5, 8, 9, usize::MAX, usize::MAX / 8 + 1] {
            let error = epoch.put(Rank(1), (at, &two), &[3, 4]).expect_err("it ends outside");
            assert_eq!(error.kind(), ErrorKind::OutOfBounds, "{at}");
            assert!(error.to_string().contains("its length is 8"), "{error}");
        }
        // Far more than there is, which must not be looked at item by item.
        let endless = number.vector(1 << 40, 1, 0)?;
        assert_eq!(
            kind_of(epoch.put(Rank(1), (0, &number.contiguous(1 << 40)?), &[3])),
            ErrorKind::OutOfBounds
        );
        assert_eq!(kind_of(epoch.put(Rank(1), (0, &endless), &[3])), ErrorKind::LengthMismatch);
        // The origin's own bounds.
        assert_eq!(kind_of(epoch.put(Rank(1), 0..2, typed(&buffer, &two))), ErrorKind::OutOfBounds);
        assert_eq!(kind_of(epoch.put(Rank(1), 0..2, own((6, &two)))), ErrorKind::OutOfBounds);
        assert_eq!(kind_of(epoch.get_vec(Rank(1), (0, &endless))), ErrorKind::System);
        Ok(())
    })?;
    let outcome = window.fence(|epoch| epoch.get(Rank(1), 0..2, typed_mut(&mut buffer, &two)));
    assert_eq!(kind_of(outcome), ErrorKind::OutOfBounds);
    if team.rank() == Rank(1) {
        assert_eq!(*window.local()?, [0, 0, 0, 0, 1, 0, 0, 2]);
    }
    Ok(())
}

fn a_scatter_add_is_one_accumulate(team: &Team) -> Outcome {
    const LEN: usize = 64;
    let ranks = team.size() as usize;
    let mut window = Window::<i64>::allocate(team, LEN)?;
    // Which places of the whole array, whose parts lie one behind the other, each rank adds to; a rank comes to a place once.
    let places =
        |rank: usize| -> Vec<usize> { (0..40).map(|i| (i * 5 + rank * 3) % (LEN * ranks)).collect() };
    let amount = |rank: usize, i: usize| (rank * 1000 + i) as i64;
    let me = team.rank().index();
    window.fence(|epoch| {
        for target in team.ranks() {
            let mine: Vec<(usize, usize)> = places(me)
                .into_iter()
                .enumerate()
                .filter(|(_, place)| place / LEN == target.index())
                .collect();
            let ranges: Vec<_> = mine.iter().map(|(_, place)| place % LEN..place % LEN + 1).collect();
            let amounts: Vec<i64> = mine.iter().map(|&(i, _)| amount(me, i)).collect();
            // All elements of one pair of ranks in one call, whatever the order of their places.
            epoch.accumulate(target, (0, &Datatype::of::<i64>().indexed(&ranges)?), Sum, amounts)?;
        }
        Ok(())
    })?;
    let mut serial = vec![0_i64; LEN * ranks];
    for rank in 0..ranks {
        for (i, place) in places(rank).into_iter().enumerate() {
            serial[place] += amount(rank, i);
        }
    }
    assert_eq!(*window.local()?, serial[me * LEN..(me + 1) * LEN]);
    Ok(())
}

fn structures_are_elements(team: &Team) -> Outcome {
    let mut window = Window::<Triple>::allocate(team, 6)?;
    let (me, next) = (team.rank().0, Rank((team.rank().0 + 1) % team.size()));
    let previous = (me + team.size() - 1) % team.size();
    let of_rank = |rank: u32, at: u64| Triple {
        first: u64::from(rank) << 32 | at,
        second: [rank as f32, -0.5],
        third: !rank,
        flag: (rank == 0).into(),
        unused: [at as u8; 3],
    };
    window.fence(|epoch| {
        epoch.put(next, 1, [of_rank(me, 0), of_rank(me, 1)])?;
        epoch.put(next, Strided { start: 3, count: 2, block: 1, stride: 2 }, [of_rank(me, 2), of_rank(me, 3)])
    })?;
    assert_eq!(window.local()?[1..4], [0, 1, 2].map(|at| of_rank(previous, at)));
    assert_eq!(window.load(5)?, of_rank(previous, 3));
    window.store(4, of_rank(9, 9))?;
    let mut every_other = [of_rank(7, 7); 5];
    let odd = Strided { start: 0, count: 3, block: 1, stride: 2 };
    let back = window.fence(|epoch| {
        epoch.get(next, 1..4, strided_mut(&mut every_other, odd))?;
        Ok((
            epoch.get_value(next, 5)?,
            epoch.get_vec(next, 4..5)?,
            epoch.fetch_op(next, 4, NoOp, of_rank(1, 1))?,
        ))
    })?;
    assert_eq!(back, (of_rank(me, 3), vec![of_rank(9, 9)], of_rank(9, 9)));
    assert_eq!(every_other, [of_rank(me, 0), of_rank(7, 7), of_rank(me, 1), of_rank(7, 7), of_rank(me, 2)]);
    // Only the second fields of all elements, as plain numbers.
    let seconds = Datatype::of::<f32>().contiguous(2)?.resized(size_of::<Triple>())?.contiguous(2)?;
    let at = Datatype::structure(&[(8, seconds)])?;
    let mut numbers = [0.0_f32; 4];
    let dense = Datatype::of::<f32>().contiguous(4)?;
    window.fence(|epoch| epoch.get(next, (1, &at), typed_mut(&mut numbers, &dense)))?;
    assert_eq!(numbers, [me as f32, -0.5, me as f32, -0.5]);
    Ok(())
}

fn any_byte_is_a_truth_value(team: &Team) -> Outcome {
    let mut window = Window::<Bool>::allocate(team, 256)?;
    let bytes: Vec<u8> = (0..=255).collect();
    let all = Datatype::of::<u8>().contiguous(256)?;
    // Whatever another rank puts there by whatever type.
    window.fence(|epoch| epoch.put(Rank(1), (0, &all), typed(&bytes, &all)))?;
    if team.rank() == Rank(1) {
        let local = window.local()?;
        assert!(!local[0].get() && local[1..].iter().all(|value| value.get()));
    }
    team.barrier()?;
    window.lock(Rank(1), LockKind::Shared, |epoch| {
        epoch.accumulate(Rank(1), 7, rma::And, [Bool::from(true); 2])?;
        epoch.accumulate(Rank(1), 9, rma::Xor, [Bool::from(team.rank() == Rank(0))])?;
        epoch.accumulate(Rank(1), 10, rma::And, [Bool::from(team.rank() == Rank(0))])
    })?;
    team.barrier()?;
    let found = window.lock(Rank(1), LockKind::Shared, |epoch| epoch.get_vec(Rank(1), 7..11))?;
    assert_eq!(found, [true, true, false, false].map(Bool::from));
    Ok(())
}

fn datatypes_travel_as_bytes(team: &Team) -> Outcome {
    let column = Datatype::of::<Triple>().vector(3, 2, 5)?;
    let mut bytes = [0_u8; 128];
    let mut length = [0_u64];
    if team.rank() == Rank(0) {
        let encoded = column.to_bytes();
        bytes[..encoded.len()].copy_from_slice(&encoded);
        length[0] = encoded.len() as u64;
    }
    team.broadcast(Rank(0), &mut length)?;
    team.broadcast(Rank(0), &mut bytes)?;
    assert!(Datatype::from_bytes(&bytes[..length[0] as usize])? == column);
    assert_eq!(kind_of(Datatype::from_bytes(&bytes[1..length[0] as usize])), ErrorKind::Protocol);
    Ok(())
}

fn element_types_must_agree(team: &Team) -> Outcome {
    // As many bytes, other fields.
    let outcome = match team.rank() {
        Rank(0) => Window::<Triple>::allocate(team, 2).map(drop),
        _ => Window::<[u64; 3]>::allocate(team, 2).map(drop),
    };
    let error = outcome.expect_err("the types differ");
    assert_eq!(error.kind(), ErrorKind::CollectiveMismatch);
    assert!(error.to_string().contains("structure"), "{error}");
    Ok(())
}
