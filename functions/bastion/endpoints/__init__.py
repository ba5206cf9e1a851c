"""One module a resource: parse, call, render. Endpoints never see a concrete adapter."""
