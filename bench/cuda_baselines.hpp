#pragma once

namespace cudp::bench {

/// Registers what the toolkit's libraries take for work that our kernels do too: those of which
/// this build has the headers. What lacks its library on this machine skips itself, with a line.
void register_baselines();

}  // namespace cudp::bench
