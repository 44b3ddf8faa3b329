#pragma once
#include <string>

namespace cudp {

/// The source and compiler that this program was built from.
struct BuildInfo {
  const char* version;
  const char* commit;  ///< "unknown" if built outside a git clone
  const char* compiler;
};

BuildInfo build_info();

/// Returns text that identifies this program exactly: the linker's build id (or version, commit and
/// compiler if it has none), and the C library that it runs with. Programs with different ids may
/// compute results that differ in the last bits.
std::string program_id();

}  // namespace cudp
