// Light, dark, or as the system has it. The choice is kept in this browser.

type Choice = 'system' | 'light' | 'dark';

const order: Choice[] = ['system', 'light', 'dark'];
const place = 'pawl.theme';

function stored(): Choice {
  try {
    const value = localStorage.getItem(place);
    return value === 'light' || value === 'dark' ? value : 'system';
  } catch {
    return 'system'; // no storage
  }
}

class Theme {
  choice = $state<Choice>(stored());
  readonly name = $derived({ system: 'as the system', light: 'light', dark: 'dark' }[this.choice]);
  readonly icon = $derived(({ system: 'half', light: 'sun', dark: 'moon' } as const)[this.choice]);

  next(): void {
    this.choice = order[(order.indexOf(this.choice) + 1) % order.length]!;
    if (this.choice === 'system') delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = this.choice;
    try {
      if (this.choice === 'system') localStorage.removeItem(place);
      else localStorage.setItem(place, this.choice);
    } catch {
      // No storage: it holds until the page is closed.
    }
  }
}

export const theme = new Theme();
