// The session, as the daemon is asked about it: one shape for every question.

import { forTheWire } from "./messages.mjs";
import { hasRecall } from "./recall.mjs";

export const VERSION = 1;

/**
 * Which session it is, where it works, what it holds (`messages`, tidied) and may do. `context` is what the client says
 * of the window, undefined where that is not known or not this conversation's; `asked` is what the question adds.
 */
export async function question($, options, messages, context, asked) {
  const [id, cwd, info, canRecall] = await Promise.all([
    $.session.id(),
    $.session.cwd(),
    $.session.info(),
    hasRecall($),
  ]);
  return {
    v: VERSION,
    session_id: id,
    cwd,
    transcript_path: info.transcriptPath,
    options,
    context_tokens: context?.tokens ?? null,
    window_tokens: context?.window ?? null,
    recall_tool: canRecall,
    messages: forTheWire(messages),
    ...asked,
  };
}
