// What a person can do about each kind of failure.

/** By code: [title, advice]. */
export const PROBLEMS = {
  missing: ['A file of the model is missing', 'The server does not have all files of the model. If this is your server, check its models folder, then try again.'],
  http: ['The model could not be fetched', 'The server answered with something else than the model. Try again in a moment.'],
  network: ['The connection was lost', 'Check that you are online and that the server is running, then try again.'],
  invalid_file: ['The model’s files are damaged', 'They may have been cut off on their way. Try again; if it stays so, the files on the server are broken.'],
  integrity: ['The model is not the one that was promised', 'Its files differ from what this page expects, so they are not used. Tell whoever runs this site.'],
  unsupported: ['This model is of a kind that does not run here', 'Another model may do.'],
  out_of_memory: ['There is not enough memory', 'Close other tabs, then try again.'],
  context_overflow: ['This conversation is full', 'The model cannot hold more text. Start a new chat, or write a shorter message.'],
  not_finite: ['The model computed nonsense', 'Its files are probably damaged. Load them again.'],
  io: ['A file could not be written', 'Check whether there is room for it, then try again.'],
  environment: ['This browser cannot run the model', 'It needs WebAssembly with SIMD: a current Chrome, Edge, Firefox or Safari has it.'],
  version_mismatch: ['Two versions of this page got mixed', 'Reload the page without the browser’s cache (Ctrl+Shift+R, on a Mac Command+Shift+R).'],
  dead: ['The model stopped working', 'It has to be loaded again.'],
  disposed: ['The model was put away', 'It has to be loaded again.'],
}

const NO_MODEL_THERE = 'A model is a .gguf file, or a folder with config.json, tokenizer.json and .safetensors files, as Hugging Face publishes them.'

/** Where more can be said of a model that was chosen, by its kind. */
export const LOAD_ADVICE = {
  any: {
    busy: ['The server has too much to do', 'It asks to be left alone for a while. Try again in some minutes.'],
    invalid_argument: ['This is no model', NO_MODEL_THERE],
    no_tokenizer: ['This model knows no text', 'It came without a tokenizer, so it takes and gives numbers only.'],
  },
  hub: {
    refused: ['The hub wants to know who asks', 'The model is gated or private, or there is none of this name. If you were given access to it, enter a token.'],
    missing: ['There is no such model', `Check its name. ${NO_MODEL_THERE}`],
    network: ['The connection was lost', 'Check that you are online, then try again: it goes on from what has arrived.'],
  },
  address: {
    missing: ['There is no model at this address', NO_MODEL_THERE],
    http: ['The server does not give the model', 'Check the address, and whether everybody may read what is there.'],
    network: ['The server cannot be reached', 'Check the address and your connection. The server must also allow pages of other sites to read from it (CORS). What has arrived is kept.'],
  },
  files: {
    missing: ['A file of the model is missing', `Choose the folder that holds all of it. ${NO_MODEL_THERE}`],
    io: ['The files cannot be read', 'They may have been moved or changed since they were chosen. Choose them again.'],
    invalid_file: ['The model’s files are damaged', 'They may not have been downloaded to their end. Get them again, then choose them once more.'],
  },
}
