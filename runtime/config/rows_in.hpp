#pragma once

namespace cudp {

/// Place of the features of examples during a training: in memory, or in a file, from which each
/// step copies the rows that it draws. automatic: in a file if they would take more than half of
/// the available memory.
enum class RowsIn { automatic, memory, file };

}  // namespace cudp
