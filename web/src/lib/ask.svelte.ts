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
}

/** Asking is a question with what can be done. */
export interface Asking {
  title: string;
  text?: string;
  /** loses says what is lost, and gives the button the colour of it. */
  loses?: string;
  fields?: Field[];
  /** quick are texts that are put into the first field by a number key. */
  quick?: string[];
  yes: string;
}

interface Open extends Asking {
  done: (answer: Record<string, string> | null) => void;
}

class Ask {
  open = $state.raw<Open | null>(null);

  /** ask shows a question; null is no. */
  ask(asking: Asking): Promise<Record<string, string> | null> {
    this.open?.done(null);
    return new Promise((resolve) => {
      this.open = {
        ...asking,
        done: (answer) => {
          this.open = null;
          resolve(answer);
        },
      };
    });
  }

  /** sure asks about something by which something is lost. */
  async sure(title: string, loses: string, yes: string): Promise<boolean> {
    return (await this.ask({ title, loses, yes })) !== null;
  }
}

export const asking = new Ask();
