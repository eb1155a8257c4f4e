//! Futures behind a trait object.

use std::future::Future;
use std::pin::Pin;

/// A future whose type nobody needs to know.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
