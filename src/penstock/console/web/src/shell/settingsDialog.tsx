import { Dialog } from "../parts/dialog";
import { Choice, Field } from "../parts/field";
import { language, theme, zone, type Language, type Theme, type Zone } from "../settings";
import { w } from "../words/words";

export const SettingsDialog = ({ onClose }: { onClose: () => void }) => (
  <Dialog title={w().settings} onClose={onClose}>
    <Field label={w().language}>
      <Choice
        value={language.value}
        set={(next) => (language.value = next as Language)}
        of={[
          ["en", "English"],
          ["zh", "简体中文"],
        ]}
      />
    </Field>
    <Field label={w().theme}>
      <Choice
        value={theme.value}
        set={(next) => (theme.value = next as Theme)}
        of={[
          ["system", w().themeSystem],
          ["light", w().themeLight],
          ["dark", w().themeDark],
        ]}
      />
    </Field>
    <Field label={w().zone}>
      <Choice
        value={zone.value}
        set={(next) => (zone.value = next as Zone)}
        of={[
          ["local", w().zoneLocal],
          ["utc", w().zoneUtc],
        ]}
      />
    </Field>
  </Dialog>
);
