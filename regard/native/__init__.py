"""The native engine: the Transformer's encoder, its decoder step and a plain beam search in C, optional.

`source/` holds the C; `build` compiles it where a compiler is found; `library` loads it and chooses the instruction
set; `packing` quantises and packs weights; `engine` is the model behind the interface of every other (`Decodable`), and
`stepper` the search. Without the library the Python path does the same.
"""
