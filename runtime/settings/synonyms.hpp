#pragma once
#include <span>

#include "runtime/base/nearest.hpp"

namespace cudp {

/// Returns a list of names of options in Opacus, JAX-Privacy, TensorFlow Privacy, diffprivlib and
/// scikit-learn, each with the corresponding option of cudp. If a user types such a name, the error
/// message suggests that option. A name may correspond to different options in different commands
/// of cudp.
std::span<const Synonym> option_synonyms();

}  // namespace cudp
