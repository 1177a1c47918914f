"""The registry of schemas: what it knows, decides and keeps."""
