#pragma once

namespace cudp {

/// What this program was built from.
struct BuildInfo {
  const char* version;
  const char* commit;  ///< "unknown" outside of a git clone
  const char* compiler;
};

BuildInfo build_info();

}  // namespace cudp
