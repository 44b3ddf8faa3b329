#pragma once
#include <span>

#include "runtime/base/nearest.hpp"

namespace cudp {

/// Returns names of options in Opacus, JAX-Privacy, TensorFlow Privacy, diffprivlib and
/// scikit-learn, with the corresponding option of cudp, for error messages. A name may stand for
/// different options in different commands.
std::span<const Synonym> option_synonyms();

}  // namespace cudp
