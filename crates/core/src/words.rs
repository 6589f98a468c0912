//! Enums that have a word for each variant.

/// An enum whose variants stand beside their words: `Pending = "pending"`. Its `as_str` gives the word.
///
/// ```
/// portcullis_core::words! {
///     /// State of a door.
///     #[derive(Debug, Clone, Copy, PartialEq)]
///     pub enum Door {
///         Open = "open",
///         Shut = "shut",
///     }
/// }
///
/// assert_eq!(Door::Open.as_str(), "open");
/// ```
///
/// After `listed`, the enum has `ALL` in the order of its variants, and `named` finds the variant of a word:
///
/// ```
/// # portcullis_core::words! { listed
/// #     #[derive(Debug, Clone, Copy, PartialEq)]
/// #     pub enum Door { Open = "open", Shut = "shut" }
/// # }
/// assert_eq!(Door::from_word("shut"), Some(Door::Shut));
/// assert_eq!(Door::ALL.len(), 2);
/// ```
#[macro_export]
macro_rules! words {
    (listed $(#[$meta:meta])* $vis:vis enum $name:ident {
        $($(#[$about:meta])* $variant:ident = $word:literal),+ $(,)?
    }) => {
        $crate::words! {
            $(#[$meta])*
            $vis enum $name { $($(#[$about])* $variant = $word),+ }
        }

        impl $name {
            /// Every variant, in order.
            $vis const ALL: [Self; [$($word),+].len()] = [$(Self::$variant),+];

            /// The variant of this word.
            #[must_use]
            $vis fn from_word(word: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|it| it.as_str() == word)
            }
        }
    };
    ($(#[$meta:meta])* $vis:vis enum $name:ident {
        $($(#[$about:meta])* $variant:ident = $word:literal),+ $(,)?
    }) => {
        $(#[$meta])*
        $vis enum $name { $($(#[$about])* $variant),+ }

        impl $name {
            /// The word for it.
            #[must_use]
            $vis const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }
    };
}
