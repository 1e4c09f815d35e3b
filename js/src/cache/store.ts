// What the cache needs of a place that keeps bytes: the browser's private file system (opfs.ts) or a folder (node-store.ts).

/** An open file, for one owner at a time. Its functions work at once; a failing disk or a full one throws. */
export interface StoredFile {
  size(): number
  /** Fills `bytes` from `at` on; returns how many there were. */
  read(bytes: Uint8Array, at: number): number
  write(bytes: Uint8Array, at: number): void
  truncate(size: number): void
  close(): void
}

/** The folder of one model. */
export interface StoreFolder {
  /** Opens a file, which is made where it is missing. */
  open(name: string): Promise<StoredFile>
  /** A whole file as text, also while somebody has it open; '' where it is missing. */
  readText(name: string): Promise<string>
  remove(name: string): Promise<void>
  list(): Promise<{ name: string; bytes: number; changed: number }[]>
}

export interface Store {
  /** A model's folder, which is made where it is missing. */
  folder(name: string): Promise<StoreFolder>
  folders(): Promise<string[]>
  remove(folder: string): Promise<void>
  /** Bytes that all of this origin or user takes and may take, where that is known. */
  quota(): Promise<{ usage: number; quota: number } | undefined>
  /**
   * Makes the caller the only user of a folder, across tabs and processes; returns how to end that. It ends by itself with the worker.
   * Waits while another has it, after calling `waiting`; without `waiting` it gives up then, and returns undefined.
   */
  lock(folder: string, waiting?: () => void): Promise<(() => void) | undefined>
}
