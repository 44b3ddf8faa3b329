#pragma once
#include <span>

#include "runtime/base/nearest.hpp"

namespace cudp {

/// Returns names that users of Opacus, JAX-Privacy, TensorFlow Privacy, diffprivlib and
/// scikit-learn may type for options of cudp's commands. A name may stand for different options in
/// different commands.
std::span<const Synonym> option_synonyms();

}  // namespace cudp
