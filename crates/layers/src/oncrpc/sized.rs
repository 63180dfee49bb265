//! Calls and replies of any size. A call says how long its reply must be, so that both ends need not agree on
//! sizes beforehand.

use super::client::{Channel, Client};
use crate::sized::{SizedWire, Sizes};
use netdyno_measure::layer::LayerError;

impl<C: Channel> SizedWire for Client<C> {
    fn largest(&self) -> usize {
        Client::largest(self)
    }

    fn announce(&mut self, Sizes { request, reply }: Sizes) -> Result<(), LayerError> {
        self.set_sizes(request, reply);
        Ok(())
    }

    fn is_confirmed(&self) -> bool {
        true
    }

    fn window(&self) -> usize {
        Client::window(self)
    }
}
