"""The one way out of a jail in mode `proxied`: connections accepted from it become judged connections to the world."""
