"""The rules that read what people say."""
