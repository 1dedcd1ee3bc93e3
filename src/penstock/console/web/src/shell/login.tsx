import { useSignal } from "@preact/signals";
import { asRefusal, ask, type Refusal } from "../asking/ask";
import { session, took } from "../asking/session";
import type { Session } from "../asking/shapes";
import { closeStream, openStream } from "../asking/stream";
import { Field, Text } from "../parts/field";
import { Refused } from "../parts/shown";
import { addressOf, path } from "../routing/place";
import { w } from "../words/words";
import { Logo } from "./frame";

/** Shown instead of any page until somebody has logged in; then the page that was asked for is there. */
export function LoginPage() {
  const user = useSignal("");
  const password = useSignal("");
  const refusal = useSignal<Refusal | null>(null);
  const busy = useSignal(false);
  const oidc = session.value?.oidc ?? null;
  const send = async (event: Event): Promise<void> => {
    event.preventDefault();
    busy.value = true;
    refusal.value = null;
    try {
      took(await ask<Session>("/login", { method: "POST", body: { user: user.value, password: password.value } }));
      closeStream();
      openStream();
    } catch (error) {
      refusal.value = asRefusal(error);
    } finally {
      password.value = "";
      busy.value = false;
    }
  };
  return (
    <main class="login">
      <form class="panel" onSubmit={(event) => void send(event)}>
        <div class="body stack">
          <h1 class="row">
            <Logo /> Penstock
          </h1>
          <p class="soft">{w().loginText}</p>
          {refusal.value && <Refused refusal={refusal.value} />}
          {session.value?.login === "kafka" && (
            <>
              <Field label={w().user}>
                <Text
                  value={user.value}
                  set={(next) => (user.value = next)}
                  name="user"
                  autocomplete="username"
                  autofocus
                />
              </Field>
              <Field label={w().password}>
                <Text
                  type="password"
                  value={password.value}
                  set={(next) => (password.value = next)}
                  name="password"
                  autocomplete="current-password"
                />
              </Field>
              <button class="button main" disabled={busy.value || !user.value || !password.value}>
                {w().logIn}
              </button>
            </>
          )}
          {oidc && (
            <a class="button main" href={addressOf("/api/v1/login/oidc?next=" + encodeURIComponent(path.value))}>
              {w().loginWith(oidc.name)}
            </a>
          )}
        </div>
      </form>
    </main>
  );
}
