#pragma once
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/bytes.hpp"
#include "runtime/data/dataset.hpp"
#include "runtime/data/vocabulary.hpp"

namespace cudp {

/// A public table of vectors, as a file has it.
struct VectorTable {
  WordVectors vectors;
  std::vector<std::string> words;  ///< of the rows; empty where the file does not say
  std::string digest;              ///< SHA-256 of the (unpacked) file, hexadecimal
  std::string source;              ///< the file, for error lines
};

/// Reads a .safetensors file (one matrix of F32 or F16 numbers: `tensor`, or its only one) or
/// GloVe's text format (a line a word: the word and its numbers, blanks between). Which one goes by
/// the first bytes. Throws InputError with the line or the tensor.
VectorTable read_vectors(ByteReader& reader, const std::string& tensor);

/// Rows as their first `dims` principal components: centred, then turned, then scaled to a root
/// mean square of 0.4, so that tables are alike whatever their scale. The sign of a component is
/// that which makes the largest number of its direction positive. As it is where it has `dims`
/// columns. Throws InputError where there are fewer columns.
void reduce(VectorTable& table, int dims);

/// Vectors of a vocabulary's numbers: zeros for the marks. Where the table names its rows, those of
/// its words; one that it lacks is the mean of its parts (don't = do + n't) or, where the table is
/// of word pieces, of its pieces; else zero. Otherwise row k is word k's. Throws InputError where
/// there are fewer rows than words.
std::shared_ptr<const WordVectors> vectors_of(const Vocabulary& vocabulary,
                                              const VectorTable& table);

/// English words as GloVe's tokenizer splits them: the second part is n't, 's, 're, 've, 'll, 'd or
/// 'm; empty where there is none.
struct Clitic {
  std::string_view stem;
  std::string_view ending;
};
Clitic split_clitic(std::string_view word);

}  // namespace cudp
