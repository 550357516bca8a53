// Questions of the page to the person, one at a time: is it meant, and in
// which words.

/** Field is one thing to fill in. */
export interface Field {
  name: string;
  label: string;
  value?: string;
  hint?: string;
  /** lines makes it a text of several lines. */
  lines?: boolean;
  needed?: boolean;
  /** choices makes it a choice: value, label. */
  choices?: [string, string][];
  /** shown is whether it is asked for, given what is filled in; always without it. */
  shown?: (answers: Answers) => boolean;
  /** picks makes it several of these, found by typing: value, label. Its value is theirs, with spaces between. */
  picks?: [string, string][];
}

/** Asking is a question with what can be done. */
export interface Asking {
  title: string;
  text?: string;
  /** loses says what is lost, and gives the button the colour of it. */
  loses?: string;
  /** list are lines that belong to it, such as files. */
  list?: string[];
  fields?: Field[];
  /** quick are texts that are put into the first field by a number key. */
  quick?: string[];
  /** yes is the name of the button that does it. */
  yes: string;
}

/** Answers are what was filled in, by the fields' names. */
export type Answers = Record<string, string>;

interface Open extends Asking {
  /** agree does the work, and throws what went wrong. */
  agree: (answers: Answers) => Promise<void>;
  no: () => void;
}

class Ask {
  open = $state.raw<Open | null>(null);

  /**
   * ask shows a question, and does the work with what was filled in. The
   * question stays, with all that was written, until the work succeeds; null is
   * that the person would not.
   */
  ask<T>(asking: Asking, work: (answers: Answers) => Promise<T>): Promise<T | null> {
    this.open?.no();
    return new Promise((resolve) => {
      const close = (result: T | null) => {
        if (this.open === mine) this.open = null;
        resolve(result);
      };
      const mine: Open = { ...asking, agree: async (answers) => close(await work(answers)), no: () => close(null) };
      this.open = mine;
    });
  }

  /** sure asks about something by which something is lost. */
  async sure(title: string, loses: string, yes: string): Promise<boolean> {
    return (await this.ask({ title, loses, yes }, async () => true)) !== null;
  }
}

export const asking = new Ask();
