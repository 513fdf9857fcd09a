fn main() {}

// A reference into the memory ends when a window is made over it.
fn touched(team: &rma::Team, mut memory: Vec<f64>) -> rma::Result<()> {
    let first = &mut memory[0];
    let mut window = rma::Window::create(team, memory)?;
    window.fence(|_| *first = 1.0)
}
