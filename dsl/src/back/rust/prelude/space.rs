//! Index space: which points a rank owns, where they lie in its memory, and which strips travel between whom.
//! Everything is computed by every rank alone from the same numbers. Never communicates.
//!
//! All grids have [`AXES`] axes here; a grid of fewer has leading axes of one point, so that the last axis is always
//! the contiguous one.

use super::numbers::Value;

/// Axes of every grid.
pub const AXES: usize = 3;

/// A global index, or a count per axis.
pub type Point = [i64; AXES];

/// A box of points: `lo` belongs to it, `hi` does not.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Region {
    /// First point.
    pub lo: Point,
    /// One past the last point.
    pub hi: Point,
}

impl Region {
    /// The points of both.
    pub fn intersect(self, other: Region) -> Region {
        let mut both = self;
        for axis in 0..AXES {
            both.lo[axis] = self.lo[axis].max(other.lo[axis]);
            both.hi[axis] = self.hi[axis].min(other.hi[axis]).max(both.lo[axis]);
        }
        both
    }

    /// True when no point is in it.
    pub fn is_empty(self) -> bool {
        (0..AXES).any(|axis| self.hi[axis] <= self.lo[axis])
    }

    /// How many points it has.
    pub fn len(self) -> usize {
        (0..AXES).map(|axis| (self.hi[axis] - self.lo[axis]).max(0) as usize).product()
    }

    /// True when the point is in it.
    pub fn contains(self, point: Point) -> bool {
        (0..AXES).all(|axis| self.lo[axis] <= point[axis] && point[axis] < self.hi[axis])
    }

    /// The box moved by `offset`.
    pub fn shift(self, offset: Point) -> Region {
        let mut moved = self;
        for (axis, offset) in offset.iter().enumerate() {
            moved.lo[axis] += offset;
            moved.hi[axis] += offset;
        }
        moved
    }

    /// The box with `from .. to` on one axis.
    pub fn with_axis(self, axis: usize, from: i64, to: i64) -> Region {
        let mut cut = self;
        cut.lo[axis] = from;
        cut.hi[axis] = to;
        cut
    }

    /// The first point of each row (line along the last axis), and the number of points in a row.
    pub fn rows(self) -> impl Iterator<Item = Point> {
        let empty = self.is_empty();
        (self.lo[0]..if empty { self.lo[0] } else { self.hi[0] })
            .flat_map(move |i| (self.lo[1]..self.hi[1]).map(move |j| [i, j, self.lo[2]]))
    }

    /// Every point, last axis fastest.
    pub fn points(self) -> impl Iterator<Item = Point> {
        self.rows().flat_map(move |row| (row[2]..self.hi[2]).map(move |k| [row[0], row[1], k]))
    }

    /// Points of a row.
    pub fn row_len(self) -> usize {
        (self.hi[2] - self.lo[2]).max(0) as usize
    }
}

/// How a grid is cut, as the program or the command line asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cut {
    /// Into blocks whose surface is smallest.
    Blocks,
    /// Along the first axis only.
    Rows,
    /// Into this many parts per axis of the grid, first axis first.
    Parts([usize; AXES]),
}

impl Cut {
    /// Reads `blocks`, `rows` or `2x3`.
    pub fn parse(text: &str) -> Option<Cut> {
        match text {
            "blocks" => Some(Cut::Blocks),
            "rows" => Some(Cut::Rows),
            _ => {
                let parts: Vec<usize> =
                    text.split('x').map(|part| part.parse().ok()).collect::<Option<_>>()?;
                if parts.is_empty() || parts.len() > AXES || parts.contains(&0) {
                    return None;
                }
                let mut counts = [1; AXES];
                counts[..parts.len()].copy_from_slice(&parts);
                Some(Cut::Parts(counts))
            }
        }
    }
}

/// What the cut of one grid has to respect.
#[derive(Clone, Copy, Debug)]
pub struct Demand {
    /// Points of the grid.
    pub points: Point,
    /// How many of the axes (the last ones) are the grid's.
    pub n_axes: usize,
    /// The smallest part that an axis may have when it is cut.
    pub part_min: Point,
    /// The fewest points that an axis may have when it is not cut.
    pub whole_min: Point,
}

/// Parts per axis for `ranks` ranks, or why there are none.
pub fn cut(
    ranks: usize,
    cut: Cut,
    demand: &Demand,
    what: &str,
    axis_names: &[&str],
) -> Result<[usize; AXES], String> {
    if let Some(parts) = best_cut(ranks, cut, demand) {
        return Ok(parts);
    }
    if let Cut::Parts(counts) = cut {
        let asked: usize = counts[..demand.n_axes].iter().product();
        if asked != ranks || counts[demand.n_axes..].iter().any(|count| *count != 1) {
            let written: Vec<String> = counts[..demand.n_axes].iter().map(usize::to_string).collect();
            return Err(format!(
                "a decomposition into {} parts of {what} does not fit {ranks} ranks",
                written.join("x")
            ));
        }
    }
    let largest = (1..ranks).rev().find(|ranks| match cut {
        Cut::Parts(_) => best_cut(*ranks, Cut::Blocks, demand).is_some(),
        other => best_cut(*ranks, other, demand).is_some(),
    });
    let first = AXES - demand.n_axes;
    let sizes: Vec<String> = demand.points[first..].iter().map(i64::to_string).collect();
    let needs: Vec<String> = (first..AXES)
        .filter(|axis| demand.part_min[*axis] > 1)
        .map(|axis| format!("{} points along {}", demand.part_min[axis], axis_names[axis - first]))
        .collect();
    let because = if needs.is_empty() {
        String::from("each rank needs at least one point")
    } else {
        format!("the halo needs parts of at least {}", needs.join(" and "))
    };
    let remedy = match largest {
        Some(largest) => format!("at most {largest} ranks fit"),
        None => String::from("the grid is too small even for one rank"),
    };
    Err(format!("{what} has {} points, too few for {ranks} ranks: {because}; {remedy}", sizes.join("x")))
}

fn best_cut(ranks: usize, cut: Cut, demand: &Demand) -> Option<[usize; AXES]> {
    let first = AXES - demand.n_axes;
    let mut best: Option<(u128, [usize; AXES])> = None;
    for a in (1..=ranks).filter(|a| ranks.is_multiple_of(*a)) {
        for b in (1..=ranks / a).filter(|b| (ranks / a).is_multiple_of(*b)) {
            let parts = [a, b, ranks / a / b];
            let allowed = match cut {
                Cut::Blocks => parts[..first].iter().all(|part| *part == 1),
                Cut::Rows => (0..AXES).all(|axis| axis == first || parts[axis] == 1),
                Cut::Parts(counts) => {
                    parts[..first].iter().all(|part| *part == 1)
                        && parts[first..] == counts[..demand.n_axes]
                        && counts[demand.n_axes..].iter().all(|count| *count == 1)
                }
            };
            let fits = (0..AXES).all(|axis| {
                let smallest = demand.points[axis] / parts[axis] as i64;
                let needed = if parts[axis] == 1 { demand.whole_min[axis] } else { demand.part_min[axis] };
                needed.max(1) <= smallest
            });
            if !allowed || !fits {
                continue;
            }
            // The surface that travels; strips along the last axis are contiguous, so equal surfaces prefer rows.
            let surface: u128 = (0..AXES)
                .filter(|axis| parts[*axis] > 1)
                .map(|axis| {
                    let others = (0..AXES).filter(|other| *other != axis);
                    let area: u128 = others
                        .map(|other| (demand.points[other] as u128).div_ceil(parts[other] as u128))
                        .product();
                    area * (parts[axis] as u128 - 1).min(2)
                })
                .sum();
            if best
                .is_none_or(|(least, chosen)| (surface, parts[2], parts[1]) < (least, chosen[2], chosen[1]))
            {
                best = Some((surface, parts));
            }
        }
    }
    best.map(|(_, parts)| parts)
}

/// The place of a rank among the parts of a grid.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Parts per axis.
    pub parts: [usize; AXES],
    /// This rank's part.
    pub at: [usize; AXES],
}

impl Place {
    /// Ranks are numbered last axis fastest.
    pub fn of(rank: usize, parts: [usize; AXES]) -> Place {
        let (rest, k) = (rank / parts[2], rank % parts[2]);
        Place { parts, at: [rest / parts[1], rest % parts[1], k] }
    }

    /// The rank at a place.
    pub fn rank(&self) -> usize {
        (self.at[0] * self.parts[1] + self.at[1]) * self.parts[2] + self.at[2]
    }

    /// The neighbour in a direction; around the edge where the axis is periodic.
    fn neighbour(&self, direction: Point, periodic: [bool; AXES]) -> Option<Place> {
        let mut at = self.at;
        for axis in 0..AXES {
            let parts = self.parts[axis] as i64;
            let place = at[axis] as i64 + direction[axis];
            if (place < 0 || parts <= place) && !periodic[axis] {
                return None;
            }
            at[axis] = place.rem_euclid(parts) as usize;
        }
        Some(Place { parts: self.parts, at })
    }
}

/// Shape of a field: the same for all its levels, and known to every rank.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Points of the grid the field lives on.
    pub grid: Point,
    /// Points of the field: one fewer along a staggered axis that is not periodic.
    pub points: Point,
    /// Width of the halo below, per axis.
    pub below: Point,
    /// Width of the halo above, per axis.
    pub above: Point,
    /// Axes that wrap around.
    pub periodic: [bool; AXES],
    /// Whether points that differ in more than one index are read.
    pub reach: Reach,
}

/// The form of a footprint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reach {
    /// Only along the axes.
    Star,
    /// Corners too.
    Box,
}

/// A box of halo points and the rank that owns them.
#[derive(Clone, Copy, Debug)]
struct Strip {
    owner: usize,
    halo: Region,
    owned: Region,
}

impl Shape {
    /// The points that a place owns: as even as possible.
    pub fn owned(&self, place: &Place) -> Region {
        let mut region = Region::default();
        for axis in 0..AXES {
            let (parts, at) = (place.parts[axis] as i64, place.at[axis] as i64);
            region.lo[axis] = (self.grid[axis] * at / parts).min(self.points[axis]);
            region.hi[axis] = (self.grid[axis] * (at + 1) / parts).min(self.points[axis]);
        }
        region
    }

    /// All points of the field.
    pub fn whole(&self) -> Region {
        Region { lo: [0; AXES], hi: self.points }
    }

    /// The strips that a place receives, in an order that both ends know.
    fn strips(&self, place: &Place) -> Vec<Strip> {
        let own = self.owned(place);
        let mut strips = Vec::new();
        for code in 0..27 {
            let direction = [code / 9 - 1, code / 3 % 3 - 1, code % 3 - 1];
            let n_sides = direction.iter().filter(|side| **side != 0).count();
            if n_sides == 0 || (n_sides > 1 && self.reach == Reach::Star) {
                continue;
            }
            let Some(neighbour) = place.neighbour(direction, self.periodic) else { continue };
            let mut halo = own;
            let mut wrap = [0; AXES];
            for axis in 0..AXES {
                match direction[axis] {
                    -1 => {
                        (halo.lo[axis], halo.hi[axis]) = (own.lo[axis] - self.below[axis], own.lo[axis]);
                        wrap[axis] = if place.at[axis] == 0 { self.points[axis] } else { 0 };
                    }
                    1 => {
                        (halo.lo[axis], halo.hi[axis]) = (own.hi[axis], own.hi[axis] + self.above[axis]);
                        wrap[axis] =
                            if place.at[axis] + 1 == place.parts[axis] { -self.points[axis] } else { 0 };
                    }
                    _ => {}
                }
            }
            if !halo.is_empty() {
                strips.push(Strip { owner: neighbour.rank(), halo, owned: halo.shift(wrap) });
            }
        }
        strips
    }

    /// What the rank at `place` sends, receives and copies within its own memory.
    pub fn routes(&self, place: &Place) -> Routes {
        let me = place.rank();
        let mut routes = Routes::default();
        for strip in self.strips(place) {
            if strip.owner == me {
                routes.own.push((strip.owned, strip.halo));
            } else {
                routes.receive.push((strip.owner, strip.halo));
            }
        }
        let mut peers: Vec<usize> = Vec::new();
        for code in 0..27 {
            let direction = [code / 9 - 1, code / 3 % 3 - 1, code % 3 - 1];
            if let Some(neighbour) = place.neighbour(direction, self.periodic)
                && neighbour.rank() != me
                && !peers.contains(&neighbour.rank())
            {
                peers.push(neighbour.rank());
            }
        }
        for peer in peers {
            for strip in self.strips(&Place::of(peer, place.parts)) {
                if strip.owner == me {
                    routes.send.push((peer, strip.owned));
                }
            }
        }
        routes
    }
}

/// A field's shape and this rank's place in it.
#[derive(Clone, Debug)]
pub struct Placed {
    /// The field's shape.
    pub shape: Shape,
    /// This rank's place.
    pub place: Place,
    /// How many of the axes (the last ones) are the grid's.
    pub n_axes: usize,
    /// All points of the field that no boundary fixes.
    pub free: Region,
}

impl Placed {
    /// This rank's points that no boundary fixes.
    pub fn work(&self) -> Region {
        self.shape.owned(&self.place).intersect(self.free)
    }

    /// This rank's points.
    pub fn owned(&self) -> Region {
        self.shape.owned(&self.place)
    }

    /// This rank's points of the outermost layer at the lower end of an axis.
    pub fn low(&self, axis: usize) -> Region {
        self.owned().intersect(self.shape.whole().with_axis(axis, 0, 1))
    }

    /// This rank's points of the outermost layer at the upper end of an axis.
    pub fn high(&self, axis: usize) -> Region {
        let n = self.shape.points[axis];
        self.owned().intersect(self.shape.whole().with_axis(axis, n - 1, n))
    }

    /// Points per axis of the grid.
    pub fn points(&self) -> &[i64] {
        &self.shape.points[AXES - self.n_axes..]
    }

    /// A point as messages show it.
    pub fn show(&self, point: Point) -> String {
        let index: Vec<String> = point[AXES - self.n_axes..].iter().map(i64::to_string).collect();
        format!("({})", index.join(", "))
    }
}

/// The strips of one field at one rank. Between a pair of ranks, both ends list them in the same order.
#[derive(Clone, Debug, Default)]
pub struct Routes {
    /// Owned boxes, by the rank that needs them.
    pub send: Vec<(usize, Region)>,
    /// Halo boxes, by the rank that owns them.
    pub receive: Vec<(usize, Region)>,
    /// Copies within the rank (owned box, halo box), on a periodic axis that is not cut.
    pub own: Vec<(Region, Region)>,
}

/// One level of a field: this rank's points and the halo around them, in plain private memory.
#[derive(Clone, Debug)]
pub struct Level<T> {
    /// The values, last axis contiguous.
    pub data: Vec<T>,
    /// Owned points.
    pub own: Region,
    /// Owned points and halo.
    pub held: Region,
    /// Distance in `data` of neighbours along the first and second axis.
    pub stride: [usize; 2],
    /// Whether the halo agrees with the owners' points.
    pub fresh: bool,
}

impl<T: Value> Level<T> {
    /// Zeros.
    pub fn new(shape: &Shape, place: &Place) -> Result<Level<T>, String> {
        let own = shape.owned(place);
        let mut held = own;
        for axis in 0..AXES {
            held.lo[axis] -= shape.below[axis];
            held.hi[axis] += shape.above[axis];
        }
        let row = held.hi[2] - held.lo[2];
        let plane = row * (held.hi[1] - held.lo[1]);
        let len = held.len();
        let mut data = Vec::new();
        data.try_reserve_exact(len)
            .map_err(|_| format!("no memory for {len} points of {} bytes", size_of::<T>()))?;
        data.resize(len, T::default());
        Ok(Level { data, own, held, stride: [plane as usize, row as usize], fresh: false })
    }

    /// Where a point lies in `data`.
    #[inline(always)]
    pub fn at(&self, point: Point) -> usize {
        let row = (point[0] - self.held.lo[0]) as usize * self.stride[0]
            + (point[1] - self.held.lo[1]) as usize * self.stride[1];
        row + (point[2] - self.held.lo[2]) as usize
    }

    /// The value at a point that this rank holds.
    #[inline(always)]
    pub fn get(&self, point: Point) -> T {
        self.data[self.at(point)]
    }

    /// Sets the value at a point that this rank holds.
    #[inline(always)]
    pub fn set(&mut self, point: Point, value: T) {
        let at = self.at(point);
        self.data[at] = value;
    }

    /// The values of a row of `n` points.
    #[inline(always)]
    pub fn row(&self, first: Point, n: usize) -> &[T] {
        let at = self.at(first);
        &self.data[at..at + n]
    }

    /// The values of a row of `n` points, to be changed.
    #[inline(always)]
    pub fn row_mut(&mut self, first: Point, n: usize) -> &mut [T] {
        let at = self.at(first);
        &mut self.data[at..at + n]
    }

    /// Appends a box to a message.
    pub fn pack(&self, region: Region, message: &mut Vec<u64>) {
        let n = region.row_len();
        for row in region.rows() {
            let at = self.at(row);
            message.extend(self.data[at..at + n].iter().map(|value| value.to_word()));
        }
    }

    /// Takes a box from a message; gives back what is left of it.
    pub fn unpack<'a>(&mut self, region: Region, message: &'a [u64]) -> &'a [u64] {
        let n = region.row_len();
        let (mine, rest) = message.split_at(region.len());
        for (row, words) in region.rows().zip(mine.chunks_exact(n.max(1))) {
            let at = self.at(row);
            for (value, word) in self.data[at..at + n].iter_mut().zip(words) {
                *value = T::from_word(*word);
            }
        }
        rest
    }

    /// Copies a box of the level to another place of it.
    pub fn copy_within(&mut self, from: Region, to: Region) {
        let n = from.row_len();
        for (source, destination) in from.rows().zip(to.rows()) {
            let (source, destination) = (self.at(source), self.at(destination));
            self.data.copy_within(source..source + n, destination);
        }
    }

    /// Copies a box from a level of the same shape.
    pub fn copy_from(&mut self, other: &Level<T>, region: Region) {
        let n = region.row_len();
        for row in region.rows() {
            let at = self.at(row);
            self.data[at..at + n].copy_from_slice(&other.data[at..at + n]);
        }
    }

    /// The values of a box, last axis fastest.
    pub fn values(&self, region: Region) -> Vec<T> {
        let n = region.row_len();
        let mut values = Vec::with_capacity(region.len());
        for row in region.rows() {
            let at = self.at(row);
            values.extend_from_slice(&self.data[at..at + n]);
        }
        values
    }

    /// Copies what mirrors at the lower end of an axis: `u[-k] = u[k]`.
    pub fn mirror_below(&mut self, axis: usize) {
        if self.own.lo[axis] != 0 {
            return;
        }
        for k in 1..=-self.held.lo[axis] {
            let (to, from) = (self.held.with_axis(axis, -k, 1 - k), self.held.with_axis(axis, k, k + 1));
            self.copy_within(from, to);
        }
    }

    /// Copies what mirrors at the upper end of an axis of `points` points.
    pub fn mirror_above(&mut self, axis: usize, points: i64) {
        if self.own.hi[axis] != points {
            return;
        }
        let last = points - 1;
        for k in 1..=self.held.hi[axis] - points {
            let to = self.held.with_axis(axis, last + k, last + k + 1);
            let from = self.held.with_axis(axis, last - k, last - k + 1);
            self.copy_within(from, to);
        }
    }

    /// The points outside the grid at the lower end of an axis, across all that is held on the others.
    pub fn outside_below(&self, axis: usize) -> Region {
        self.held.with_axis(axis, self.held.lo[axis], self.held.hi[axis].min(0))
    }

    /// The points outside the grid at the upper end of an axis of `points` points.
    pub fn outside_above(&self, axis: usize, points: i64) -> Region {
        self.held.with_axis(axis, self.held.lo[axis].max(points), self.held.hi[axis])
    }

    /// The first owned point that is not finite.
    #[cold]
    pub fn first_not_finite(&self) -> Option<(Point, T)> {
        self.own.points().map(|point| (point, self.get(point))).find(|(_, value)| !value.is_finite_value())
    }
}

/// Assembles the whole field from the parts of all ranks, in rank order.
pub fn assemble<T: Value>(shape: &Shape, parts: [usize; AXES], values: &[T]) -> Vec<T> {
    let whole = shape.whole();
    let mut field = vec![T::default(); whole.len()];
    let mut rest = values;
    for rank in 0..parts.iter().product() {
        let own = shape.owned(&Place::of(rank, parts));
        let n = own.row_len();
        for row in own.rows() {
            let at = ((row[0] * shape.points[1] + row[1]) * shape.points[2] + row[2]) as usize;
            let (mine, others) = rest.split_at(n);
            field[at..at + n].copy_from_slice(mine);
            rest = others;
        }
    }
    field
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(points: Point, width: i64, periodic: [bool; AXES], reach: Reach) -> Shape {
        let wide = |axis: usize| if points[axis] > 1 { width } else { 0 };
        let widths = [wide(0), wide(1), wide(2)];
        Shape { grid: points, points, below: widths, above: widths, periodic, reach }
    }

    /// Runs an exchange among all ranks in one thread and looks at every halo point that has an owner.
    fn exchange(shape: &Shape, parts: [usize; AXES]) {
        let n_ranks: usize = parts.iter().product();
        let value = |point: Point| {
            let at: Vec<i64> = (0..AXES).map(|axis| point[axis].rem_euclid(shape.points[axis])).collect();
            (at[0] * 10_000 + at[1] * 100 + at[2]) as u64
        };
        let places: Vec<Place> = (0..n_ranks).map(|rank| Place::of(rank, parts)).collect();
        let mut levels: Vec<Level<u64>> =
            places.iter().map(|place| Level::new(shape, place).unwrap()).collect();
        for level in &mut levels {
            for point in level.own.points() {
                level.set(point, value(point));
            }
        }
        let mut messages = vec![vec![Vec::new(); n_ranks]; n_ranks];
        for (rank, place) in places.iter().enumerate() {
            for (to, region) in shape.routes(place).send {
                levels[rank].pack(region, &mut messages[rank][to]);
            }
        }
        for (rank, place) in places.iter().enumerate() {
            let routes = shape.routes(place);
            for (from, to) in &routes.own {
                levels[rank].copy_within(*from, *to);
            }
            let mut left: Vec<&[u64]> = (0..n_ranks).map(|from| messages[from][rank].as_slice()).collect();
            for (from, region) in &routes.receive {
                left[*from] = levels[rank].unpack(*region, left[*from]);
            }
            assert!(left.iter().all(|rest| rest.is_empty()), "rank {rank} was sent what it does not expect");
            for point in levels[rank].held.points() {
                let outside = (0..AXES).filter(|axis| {
                    point[*axis] < levels[rank].own.lo[*axis] || levels[rank].own.hi[*axis] <= point[*axis]
                });
                if outside.count() > 1 && shape.reach == Reach::Star {
                    continue;
                }
                let known = (0..AXES).all(|axis| {
                    shape.periodic[axis] || (0 <= point[axis] && point[axis] < shape.points[axis])
                });
                if known {
                    assert_eq!(
                        levels[rank].get(point),
                        value(point),
                        "rank {rank} of {parts:?} at {point:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn every_halo_point_comes_from_its_owner() {
        for reach in [Reach::Star, Reach::Box] {
            for periodic in [[false; 3], [true; 3], [false, true, false], [false, false, true]] {
                for parts in [[1, 1, 1], [1, 2, 1], [1, 1, 3], [1, 2, 2], [1, 3, 2]] {
                    exchange(&shape([1, 13, 17], 2, periodic, reach), parts);
                }
                for parts in [[1, 1, 1], [2, 1, 1], [2, 2, 1], [1, 2, 3], [2, 2, 2]] {
                    exchange(&shape([6, 7, 8], 2, periodic, reach), parts);
                }
            }
        }
        exchange(&shape([1, 1, 11], 1, [false, false, true], Reach::Star), [1, 1, 2]);
    }

    #[test]
    fn parts_are_even_and_cover_the_field() {
        let shape = Shape { points: [1, 29, 17], ..shape([1, 30, 17], 1, [false; 3], Reach::Star) };
        let mut n_points = 0;
        for rank in 0..6 {
            let own = shape.owned(&Place::of(rank, [1, 3, 2]));
            assert!((9..=10).contains(&(own.hi[1] - own.lo[1])), "{own:?}");
            assert!((8..=9).contains(&(own.hi[2] - own.lo[2])), "{own:?}");
            n_points += own.len();
        }
        assert_eq!(n_points, shape.whole().len());
    }

    #[test]
    fn blocks_have_the_smallest_surface_and_too_many_ranks_are_refused_with_a_number() {
        let demand =
            |i, j, min| Demand { points: [1, i, j], n_axes: 2, part_min: [1, min, min], whole_min: [1; 3] };
        let blocks = |ranks, demand: &Demand| cut(ranks, Cut::Blocks, demand, "grid G", &["i", "j"]);
        assert_eq!(blocks(4, &demand(100, 100, 1)), Ok([1, 2, 2]));
        assert_eq!(blocks(6, &demand(100, 100, 1)), Ok([1, 3, 2]));
        assert_eq!(blocks(2, &demand(100, 100, 1)), Ok([1, 2, 1]));
        assert_eq!(blocks(2, &demand(4, 1000, 1)), Ok([1, 1, 2]));
        assert_eq!(cut(3, Cut::Rows, &demand(30, 17, 1), "grid G", &["i", "j"]), Ok([1, 3, 1]));
        assert_eq!(cut(6, Cut::Parts([2, 3, 1]), &demand(30, 17, 1), "grid G", &["i", "j"]), Ok([1, 2, 3]));
        assert_eq!(
            blocks(7, &demand(6, 6, 2)),
            Err("grid G has 6x6 points, too few for 7 ranks: the halo needs parts of at least 2 points along i and 2 \
                 points along j; at most 6 ranks fit"
                .into())
        );
        assert_eq!(
            cut(4, Cut::Parts([2, 3, 1]), &demand(30, 17, 1), "grid G", &["i", "j"]),
            Err("a decomposition into 2x3 parts of grid G does not fit 4 ranks".into())
        );
        assert!(blocks(40, &demand(6, 6, 1)).unwrap_err().ends_with("at most 36 ranks fit"));
    }

    #[test]
    fn mirrors_copy_the_points_inside() {
        let shape = shape([1, 1, 5], 2, [false; 3], Reach::Star);
        let mut level = Level::<i64>::new(&shape, &Place::of(0, [1, 1, 1])).unwrap();
        for k in 0..5 {
            level.set([0, 0, k], 10 + k);
        }
        level.mirror_below(2);
        level.mirror_above(2, 5);
        assert_eq!(level.data, [12, 11, 10, 11, 12, 13, 14, 13, 12]);
    }

    #[test]
    fn parts_are_assembled_in_their_places() {
        let shape = shape([1, 4, 5], 1, [false; 3], Reach::Star);
        let parts = [1, 2, 2];
        let mut values = Vec::new();
        for rank in 0..4 {
            values.extend(shape.owned(&Place::of(rank, parts)).points().map(|point| point[1] * 5 + point[2]));
        }
        assert_eq!(assemble(&shape, parts, &values), (0..20).collect::<Vec<i64>>());
    }
}
