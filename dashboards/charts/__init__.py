"""Charts that move, and figures of `vitolab.plots` as the browser shows them."""
