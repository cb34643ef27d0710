//! The samples as a picture.

use std::fmt::Write;

use super::samples::{Sample, Samples, as_f64};

const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 220.0;
const LEFT: f64 = 80.0;
const TOP: f64 = 40.0;
const GAP: f64 = 70.0;

/// What a panel shows of a second.
type Shown = fn(&Sample) -> f64;

/// Draws memory, descriptors and grants over time, one below the other.
pub fn draw(samples: &Samples) -> String {
    let panels: [(&str, Shown); 3] = [
        ("resident memory, MiB", |sample| as_f64(sample.resident_kib) / 1024.0),
        ("open descriptors", |sample| as_f64(sample.descriptors)),
        ("leases granted so far, thousands", |sample| as_f64(sample.grants) / 1000.0),
    ];
    let total = TOP + 3.0 * (HEIGHT + GAP);
    let full = LEFT + WIDTH + 30.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {full} {total}\" font-family=\"sans-serif\" font-size=\"13\">\n\
         <rect width=\"{full}\" height=\"{total}\" fill=\"white\"/>\n"
    );
    for (place, (title, value)) in (0_u32..).zip(panels) {
        let top = TOP + f64::from(place) * (HEIGHT + GAP);
        panel(&mut svg, samples, title, value, top);
    }
    svg.push_str("</svg>\n");
    svg
}

fn panel(svg: &mut String, samples: &Samples, title: &str, value: Shown, top: f64) {
    let last = samples.all.last().map_or(1.0, |sample| as_f64(sample.second)).max(1.0);
    let highest = samples.all.iter().map(value).fold(1.0, f64::max) * 1.1;
    let bottom = top + HEIGHT;
    let right = LEFT + WIDTH;
    // Writing into a string does not fail.
    let _ = writeln!(svg, "<text x=\"{LEFT}\" y=\"{}\" font-weight=\"bold\">{title}</text>", top - 8.0);
    let _ = writeln!(
        svg,
        "<rect x=\"{LEFT}\" y=\"{top}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"none\" stroke=\"#999\"/>"
    );
    for part in 0..=4_u32 {
        let share = f64::from(part) / 4.0;
        let (x, y) = (LEFT + share * WIDTH, bottom - share * HEIGHT);
        let (minutes, amount) = (share * last / 60.0, share * highest);
        let _ = writeln!(
            svg,
            "<line x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{right}\" y2=\"{y:.1}\" stroke=\"#eee\"/>\n\
             <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{amount:.1}</text>\n\
             <text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{minutes:.0} min</text>",
            LEFT - 6.0,
            y + 4.0,
            bottom + 18.0
        );
    }
    let point = |sample: &Sample| {
        let x = LEFT + as_f64(sample.second) / last * WIDTH;
        let y = bottom - value(sample) / highest * HEIGHT;
        format!("{x:.1},{y:.1}")
    };
    let points: Vec<String> = samples.all.iter().map(point).collect();
    let _ = writeln!(
        svg,
        "<polyline fill=\"none\" stroke=\"#2a6\" stroke-width=\"1.5\" points=\"{}\"/>",
        points.join(" ")
    );
}
