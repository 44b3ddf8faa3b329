#pragma once
#include <string>

namespace cudp {

/// The source and compiler that this program was built from.
struct BuildInfo {
  const char* version;
  const char* commit;  ///< "unknown" outside of a git clone
  const char* compiler;
};

BuildInfo build_info();

/// Which program this is, to the byte: the linker's digest of its contents, and the C library
/// beside it. Two programs may compute other last bits.
std::string program_id();

}  // namespace cudp
