//! Pictures of fields: a colour map with axes and a colour bar, or a curve. Values in, PNG bytes out.
//! Never touches files.

use noto_sans_mono_bitmap::{FontWeight, RasterHeight, get_raster, get_raster_width};

/// What to draw.
#[derive(Clone, PartialEq, Debug)]
pub struct Picture {
    /// One line above it.
    pub title: String,
    /// Name of the colour map.
    pub colormap: String,
    /// Points per axis; of three axes the middle plane of the last is drawn.
    pub points: Vec<usize>,
    /// Name of each axis and its coordinate at the first and last point.
    pub axes: Vec<(String, f64, f64)>,
    /// The values, last axis fastest.
    pub values: Vec<f32>,
}

/// Longest and shortest side of the plot area, in pixels.
const PLOT_MAX: f64 = 720.0;
const PLOT_MIN: f64 = 240.0;
const MARGIN_LEFT: usize = 92;
const MARGIN_TOP: usize = 56;
const MARGIN_BOTTOM: usize = 72;
const MARGIN_RIGHT: usize = 36;
const BAR_GAP: usize = 28;
const BAR_WIDTH: usize = 22;
const BAR_LABELS: usize = 104;
const TICK: usize = 6;

type Color = [u8; 3];
const INK: Color = [38, 38, 44];
const FRAME: Color = [90, 90, 98];
const GRID: Color = [226, 226, 230];
const CURVE: Color = [52, 94, 141];
const NOT_FINITE: Color = [214, 39, 40];

/// Draws a picture as a PNG file.
///
/// # Errors
/// Says what does not fit together.
pub fn draw(picture: &Picture) -> Result<Vec<u8>, String> {
    let expected: usize = picture.points.iter().product();
    if expected != picture.values.len() || picture.points.len() != picture.axes.len() || expected == 0 {
        return Err(format!(
            "a picture of {:?} points cannot hold {} values",
            picture.points,
            picture.values.len()
        ));
    }
    let canvas = match picture.points[..] {
        [_] => draw_curve(picture),
        _ => draw_map(picture),
    };
    canvas.encode().map_err(|error| format!("the picture cannot be encoded: {error}"))
}

/// The color at `at` in 0..=1.
pub fn color(colormap: &str, at: f64) -> Color {
    let at = at.clamp(0.0, 1.0);
    // Fits of degree six to the published tables; they stay within a shade of them.
    let coefficients: [[f64; 3]; 7] = match colormap {
        "gray" => return [(at * 255.0).round() as u8; 3],
        "coolwarm" => {
            let cold = [59.0, 76.0, 192.0];
            let middle = [221.0, 221.0, 221.0];
            let warm = [180.0, 4.0, 38.0];
            let (from, to, part) =
                if at < 0.5 { (cold, middle, at * 2.0) } else { (middle, warm, at * 2.0 - 1.0) };
            return std::array::from_fn(|i| (from[i] + (to[i] - from[i]) * part).round() as u8);
        }
        "plasma" => [
            [0.058732, 0.023337, 0.543340],
            [2.176515, 0.238383, 0.753960],
            [-2.689460, -7.455851, 3.110800],
            [6.130348, 42.346188, -28.518855],
            [-11.107436, -82.666311, 60.139848],
            [10.023066, 71.413618, -54.072187],
            [-3.658714, -22.931535, 18.191908],
        ],
        "magma" => [
            [-0.002136, -0.000750, -0.005386],
            [0.251661, 0.677523, 2.494027],
            [8.353717, -3.577720, 0.314468],
            [-27.668733, 14.264731, -13.649213],
            [52.176140, -27.943606, 12.944169],
            [-50.768525, 29.046583, 4.234153],
            [18.655706, -11.489774, -5.601962],
        ],
        "inferno" => [
            [0.000219, 0.001651, -0.019481],
            [0.106513, 0.563956, 3.932713],
            [11.602493, -3.972854, -15.942394],
            [-41.703996, 17.436399, 44.354145],
            [77.162936, -33.402359, -81.807309],
            [-71.319428, 32.626064, 73.209520],
            [25.131126, -12.242669, -23.070325],
        ],
        _ => [
            [0.277727, 0.005407, 0.334100],
            [0.105093, 1.404614, 1.384590],
            [-0.330862, 0.214848, 0.095095],
            [-4.634230, -5.799101, -19.332441],
            [6.228270, 14.179933, 56.690553],
            [4.776385, -13.745145, -65.353033],
            [-5.435456, 4.645853, 26.312435],
        ],
    };
    std::array::from_fn(|i| {
        let value = coefficients.iter().rev().fold(0.0, |sum, row| sum * at + row[i]);
        (value.clamp(0.0, 1.0) * 255.0).round() as u8
    })
}

/// Smallest and largest finite value; a little apart if they are equal.
fn range(values: &[f32]) -> (f64, f64) {
    let finite = values.iter().filter(|value| value.is_finite());
    let (lo, hi) = finite.fold((f32::INFINITY, f32::NEG_INFINITY), |(lo, hi), v| (lo.min(*v), hi.max(*v)));
    match (f64::from(lo), f64::from(hi)) {
        (lo, hi) if lo < hi => (lo, hi),
        (lo, hi) if lo == hi && lo != 0.0 => (lo - lo.abs() * 0.5, hi + hi.abs() * 0.5),
        _ => (-1.0, 1.0),
    }
}

fn draw_map(picture: &Picture) -> Canvas {
    let [nx, ny] = [picture.points[0], picture.points[1]];
    let depth = picture.points.get(2).copied().unwrap_or(1);
    let value = |i: usize, j: usize| picture.values[(i * ny + j) * depth + depth / 2];
    let (width, height) = plot_size(&picture.axes, nx, ny);
    let (left, top) = (MARGIN_LEFT, MARGIN_TOP);
    let bar_left = left + width + BAR_GAP;
    let mut canvas = Canvas::new(bar_left + BAR_WIDTH + BAR_LABELS, top + height + MARGIN_BOTTOM);
    let shown: Vec<f32> = match depth {
        1 => Vec::new(),
        _ => (0..nx).flat_map(|i| (0..ny).map(move |j| value(i, j))).collect(),
    };
    let (lo, hi) = range(if depth == 1 { &picture.values } else { &shown });
    // A pixel shows the mean of the points that it covers, or the point that covers it.
    let span = |at: usize, size: usize, n: usize| {
        let from = at * n / size;
        from..((at + 1) * n / size).max(from + 1)
    };
    for y in 0..height {
        let rows = span(height - 1 - y, height, ny);
        for x in 0..width {
            let (mut sum, mut n) = (0.0, 0.0);
            for i in span(x, width, nx) {
                for j in rows.clone() {
                    sum += f64::from(value(i, j));
                    n += 1.0;
                }
            }
            let mean: f64 = sum / n;
            let shade = match mean.is_finite() {
                true => color(&picture.colormap, (mean - lo) / (hi - lo)),
                false => NOT_FINITE,
            };
            canvas.set(left + x, top + y, shade);
        }
    }
    canvas.frame(left, top, width, height);
    for y in 0..height {
        let shade = color(&picture.colormap, 1.0 - y as f64 / (height - 1) as f64);
        canvas.fill(bar_left, top + y, BAR_WIDTH, 1, shade);
    }
    canvas.frame(bar_left, top, BAR_WIDTH, height);
    let labels = ticks(lo, hi, height / 60);
    for (at, label) in &labels {
        let y = top + height - 1 - ((at - lo) / (hi - lo) * (height - 1) as f64).round() as usize;
        canvas.fill(bar_left + BAR_WIDTH, y, TICK, 1, FRAME);
        canvas.text(label, bar_left + BAR_WIDTH + TICK + 4, y, Align::Left, RasterHeight::Size16);
    }
    let title = match picture.points.get(2) {
        None => picture.title.clone(),
        Some(_) => {
            let (name, from, to) = &picture.axes[2];
            let at =
                if depth == 1 { *from } else { from + (to - from) * (depth / 2) as f64 / (depth - 1) as f64 };
            format!("{}  {name} = {}", picture.title, short(at))
        }
    };
    canvas.axes(left, top, width, height, [&picture.axes[0], &picture.axes[1]], &title);
    canvas
}

fn draw_curve(picture: &Picture) -> Canvas {
    let n = picture.points[0];
    let (width, height) = (PLOT_MAX as usize, (PLOT_MAX * 0.5) as usize);
    let (left, top) = (MARGIN_LEFT, MARGIN_TOP);
    let mut canvas = Canvas::new(left + width + MARGIN_RIGHT, top + height + MARGIN_BOTTOM);
    let (mut lo, mut hi) = range(&picture.values);
    let room = (hi - lo) * 0.05;
    (lo, hi) = (lo - room, hi + room);
    for (at, _) in ticks(lo, hi, height / 60) {
        let y = top + height - 1 - ((at - lo) / (hi - lo) * (height - 1) as f64).round() as usize;
        canvas.fill(left, y, width, 1, GRID);
    }
    let y_of = |value: f32| match value.is_finite() {
        true => Some(top as f64 + (hi - f64::from(value)) / (hi - lo) * (height - 1) as f64),
        false => None,
    };
    let x_of = |index: usize| left as f64 + index as f64 / (n.max(2) - 1) as f64 * (width - 1) as f64;
    for index in 1..n {
        if let (Some(from), Some(to)) = (y_of(picture.values[index - 1]), y_of(picture.values[index])) {
            canvas.line([x_of(index - 1), from], [x_of(index), to], CURVE);
        }
    }
    canvas.frame(left, top, width, height);
    let values = (String::new(), lo, hi);
    canvas.axes(left, top, width, height, [&picture.axes[0], &values], &picture.title);
    canvas
}

/// Size of the plot area: in proportion to the coordinates unless they differ very much.
fn plot_size(axes: &[(String, f64, f64)], nx: usize, ny: usize) -> (usize, usize) {
    let extent = |axis: usize, n: usize| match (axes[axis].2 - axes[axis].1).abs() {
        extent if extent.is_finite() && 0.0 < extent => extent,
        _ => n as f64,
    };
    let ratio = (extent(0, nx) / extent(1, ny)).clamp(PLOT_MIN / PLOT_MAX, PLOT_MAX / PLOT_MIN);
    match ratio < 1.0 {
        true => ((PLOT_MAX * ratio) as usize, PLOT_MAX as usize),
        false => (PLOT_MAX as usize, (PLOT_MAX / ratio) as usize),
    }
}

/// About `n` round numbers in a range, with their texts.
fn ticks(lo: f64, hi: f64, n: usize) -> Vec<(f64, String)> {
    let rough = (hi - lo).abs() / n.max(2) as f64;
    if !rough.is_finite() || rough <= 0.0 {
        return vec![(lo, short(lo))];
    }
    let power = 10f64.powi(rough.log10().floor() as i32);
    let step =
        [1.0, 2.0, 5.0, 10.0].iter().map(|by| by * power).find(|step| rough <= *step).unwrap_or(10.0 * power);
    let (least, most) = (lo.min(hi), lo.max(hi));
    let from = (least / step).ceil() as i64;
    let to = (most / step + 1e-9).floor() as i64;
    let decimals = (-step.log10().floor()).max(0.0) as usize;
    let is_plain = 1e-4 <= step && most.abs().max(least.abs()) < 1e6;
    (from..=to)
        .map(|index| {
            let at = index as f64 * step;
            let text = match is_plain {
                true => format!("{at:.decimals$}"),
                false => short(at),
            };
            (at, if text.trim_start_matches(['-', '0', '.']).is_empty() { String::from("0") } else { text })
        })
        .collect()
}

/// Four significant digits.
fn short(value: f64) -> String {
    if value == 0.0 {
        return String::from("0");
    }
    match (1e-4..1e6).contains(&value.abs()) {
        true => {
            let decimals = (3 - value.abs().log10().floor() as i32).max(0) as usize;
            let text = format!("{value:.decimals$}");
            match text.contains('.') {
                true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
                false => text,
            }
        }
        false => {
            let text = format!("{value:.2e}");
            let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
            let digits = if digits.contains('.') {
                digits.trim_end_matches('0').trim_end_matches('.')
            } else {
                digits
            };
            format!("{digits}e{exponent}")
        }
    }
}

#[derive(Clone, Copy)]
enum Align {
    Left,
    Middle,
    Right,
}

/// Pixels.
struct Canvas {
    width: usize,
    height: usize,
    pixels: Vec<u8>,
}

impl Canvas {
    fn new(width: usize, height: usize) -> Canvas {
        Canvas { width, height, pixels: vec![255; width * height * 3] }
    }

    fn set(&mut self, x: usize, y: usize, color: Color) {
        if x < self.width && y < self.height {
            let at = (y * self.width + x) * 3;
            self.pixels[at..at + 3].copy_from_slice(&color);
        }
    }

    /// Covers a pixel in part.
    fn blend(&mut self, x: usize, y: usize, color: Color, cover: f64) {
        if x < self.width && y < self.height {
            let at = (y * self.width + x) * 3;
            for (pixel, ink) in self.pixels[at..at + 3].iter_mut().zip(color) {
                *pixel = (f64::from(*pixel) * (1.0 - cover) + f64::from(ink) * cover).round() as u8;
            }
        }
    }

    fn fill(&mut self, x: usize, y: usize, width: usize, height: usize, color: Color) {
        for row in y..y + height {
            for column in x..x + width {
                self.set(column, row, color);
            }
        }
    }

    /// A line around a box, just outside it.
    fn frame(&mut self, x: usize, y: usize, width: usize, height: usize) {
        self.fill(x - 1, y - 1, width + 2, 1, FRAME);
        self.fill(x - 1, y + height, width + 2, 1, FRAME);
        self.fill(x - 1, y - 1, 1, height + 2, FRAME);
        self.fill(x + width, y - 1, 1, height + 2, FRAME);
    }

    /// A smooth line about two pixels wide.
    fn line(&mut self, from: [f64; 2], to: [f64; 2], color: Color) {
        let [dx, dy] = [to[0] - from[0], to[1] - from[1]];
        let length = dx.hypot(dy).max(1e-9);
        let bound = |a: f64, b: f64| ((a.min(b) - 2.0).max(0.0) as usize, (a.max(b) + 3.0).max(0.0) as usize);
        let ((x0, x1), (y0, y1)) = (bound(from[0], to[0]), bound(from[1], to[1]));
        for y in y0..y1 {
            for x in x0..x1 {
                let [px, py] = [x as f64 - from[0], y as f64 - from[1]];
                let along = ((px * dx + py * dy) / (length * length)).clamp(0.0, 1.0);
                let distance = (px - along * dx).hypot(py - along * dy);
                let cover = (1.6 - distance).clamp(0.0, 1.0);
                // Neighbouring pieces overlap; the darker one stays.
                if 0.0 < cover {
                    self.blend(x, y, color, cover);
                }
            }
        }
    }

    /// Writes text, centred on `y`.
    fn text(&mut self, text: &str, x: usize, y: usize, align: Align, size: RasterHeight) {
        let advance = get_raster_width(FontWeight::Regular, size);
        let width = advance * text.chars().count();
        let start = match align {
            Align::Left => x,
            Align::Middle => x.saturating_sub(width / 2),
            Align::Right => x.saturating_sub(width),
        };
        let top = y.saturating_sub(size.val() / 2);
        for (index, c) in text.chars().enumerate() {
            let glyph = get_raster(c, FontWeight::Regular, size)
                .or_else(|| get_raster('?', FontWeight::Regular, size));
            let Some(glyph) = glyph else { continue };
            for (dy, row) in glyph.raster().iter().enumerate() {
                for (dx, cover) in row.iter().enumerate() {
                    if *cover != 0 {
                        self.blend(start + index * advance + dx, top + dy, INK, f64::from(*cover) / 255.0);
                    }
                }
            }
        }
    }

    fn axes(
        &mut self,
        left: usize,
        top: usize,
        width: usize,
        height: usize,
        axes: [&(String, f64, f64); 2],
        title: &str,
    ) {
        let part = |at: f64, from: f64, to: f64| if from == to { 0.5 } else { (at - from) / (to - from) };
        let (name, from, to) = axes[0];
        for (at, label) in ticks(*from, *to, width / 100) {
            let x = left + (part(at, *from, *to) * (width - 1) as f64).round() as usize;
            self.fill(x, top + height + 1, 1, TICK, FRAME);
            self.text(&label, x, top + height + TICK + 12, Align::Middle, RasterHeight::Size16);
        }
        self.text(
            name,
            left + width / 2,
            top + height + MARGIN_BOTTOM - 20,
            Align::Middle,
            RasterHeight::Size20,
        );
        let (name, from, to) = axes[1];
        for (at, label) in ticks(*from, *to, height / 70) {
            let y = top + height - 1 - (part(at, *from, *to) * (height - 1) as f64).round() as usize;
            self.fill(left - 1 - TICK, y, TICK, 1, FRAME);
            self.text(&label, left - TICK - 6, y, Align::Right, RasterHeight::Size16);
        }
        self.text(name, 20, top + height / 2, Align::Middle, RasterHeight::Size20);
        self.text(title, left, top / 2, Align::Left, RasterHeight::Size20);
    }

    fn encode(&self) -> Result<Vec<u8>, png::EncodingError> {
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, self.width as u32, self.height as u32);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        encoder.write_header()?.write_image_data(&self.pixels)?;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn viridis_runs_from_purple_to_yellow() {
        assert_eq!(color("viridis", 0.0), [71, 1, 85]);
        let [r, g, b] = color("viridis", 1.0);
        assert!(240 < r && 220 < g && b < 60, "{r} {g} {b}");
    }

    #[test]
    fn ticks_are_round_numbers() {
        let texts = |lo, hi, n| ticks(lo, hi, n).into_iter().map(|(_, text)| text).collect::<Vec<_>>();
        assert_eq!(texts(0.0, 1.0, 5), ["0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(texts(-3.0, 3.0, 3), ["-2", "0", "2"]);
        assert_eq!(texts(0.0, 2e-7, 2), ["0", "1e-7", "2e-7"]);
    }

    #[test]
    fn a_field_of_any_number_of_axes_is_drawn() {
        for points in [vec![9], vec![4, 6], vec![3, 4, 5], vec![1, 1]] {
            let n: usize = points.iter().product();
            let picture = Picture {
                title: String::from("p  u  step 1"),
                colormap: String::from("viridis"),
                axes: points.iter().map(|_| (String::from("x"), 0.0, 1.0)).collect(),
                points,
                values: (0..n).map(|value| value as f32).collect(),
            };
            let bytes = draw(&picture).unwrap();
            let mut reader = png::Decoder::new(std::io::Cursor::new(&bytes)).read_info().unwrap();
            let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
            reader.next_frame(&mut pixels).unwrap();
            assert!(pixels.iter().any(|pixel| *pixel < 100));
            assert!(draw(&Picture { values: Vec::new(), ..picture }).is_err());
        }
    }
}
