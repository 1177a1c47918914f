"""The network: document, expressions, boxes, graph. Pure; imports only errors, ids and names."""
