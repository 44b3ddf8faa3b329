#include "runtime/build_info.hpp"

#include "build_info_values.hpp"

namespace cudp {

BuildInfo build_info() { return {CUDP_VERSION, CUDP_COMMIT, CUDP_COMPILER}; }

}  // namespace cudp
