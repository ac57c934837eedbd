"""Text in and out of a model: corpora, filters, tokenizers. Imports no torch: preparing must stay small."""
