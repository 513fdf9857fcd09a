fn main() {}

#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
struct Reference(Option<&'static str>);

fn window(team: &rma::Team) -> rma::Result<rma::Window<Reference>> {
    rma::Window::allocate(team, 1)
}
