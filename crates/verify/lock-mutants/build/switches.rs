//! Puts the switches into the source of a lock.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use syn::spanned::Spanned;
use syn::visit_mut::{self, VisitMut};
use syn::{
    Arm, Attribute, BinOp, Block, Expr, ExprIf, ExprWhile, Field, File, GenericArgument, ImplItem,
    ImplItemFn, Item, ItemFn, Lit, Local, Member, Meta, Pat, ReturnType, Signature, Stmt, Type,
    UnOp, parse_quote,
};

/// The names of constants that are integers, and the fields of structs.
#[derive(Default)]
pub(crate) struct Constants {
    integers: BTreeSet<String>,
    others: BTreeSet<String>,
}

const INTEGERS: [&str; 6] = ["u8", "u16", "u32", "u64", "usize", "i32"];

impl Constants {
    /// Adds those of a file.
    pub(crate) fn add(&mut self, file: &File) {
        self.items(&file.items);
        self.integers
            .extend(["NESTING", "MAX_CPUS", "HELD_LOCKS"].map(str::to_owned));
    }

    fn items(&mut self, items: &[Item]) {
        for item in items {
            match item {
                Item::Const(constant) => self.constant(&constant.ident.to_string(), &constant.ty),
                Item::Impl(of) => {
                    for item in &of.items {
                        if let ImplItem::Const(constant) = item {
                            self.constant(&constant.ident.to_string(), &constant.ty);
                        }
                    }
                }
                Item::Mod(module) => {
                    if let Some((_, items)) = &module.content {
                        self.items(items);
                    }
                }
                _ => {}
            }
        }
    }

    fn constant(&mut self, name: &str, of: &Type) {
        let of = of.to_token_stream().to_string();
        let names = match INTEGERS.contains(&&*of) {
            true => &mut self.integers,
            false => &mut self.others,
        };
        names.insert(name.to_owned());
    }

    fn has(&self, name: &str) -> bool {
        self.integers.contains(name) && !self.others.contains(name)
    }
}

/// A switch: file, line, column, what it changes.
pub(crate) type Site = (String, u32, u32, String);

/// The switches put in so far, and where the next come.
pub(crate) struct Switches {
    pub(crate) sites: Vec<Site>,
    /// The folder of the crate whose files are entered.
    pub(crate) folder: &'static str,
    constants: Constants,
    files: Vec<String>,
    /// Fields of the structs of each file: name to the next one of its type.
    fields: BTreeMap<String, String>,
}

/// Names what the checker's platform changes, or costs time only.
const ACCESSES: [&str; 27] = [
    "load",
    "store",
    "swap",
    "compare_exchange",
    "fetch_add",
    "fetch_sub",
    "fetch_and",
    "fetch_or",
    "spin",
    "spin_until",
    "take_if_zero",
    "draw_ticket",
    "store_low_byte",
    "store_low_half",
    "increment_low_half",
    "swap_high_half",
    "relax",
    "relax_for",
    "fence",
    "interrupt_fence",
    "light_fence",
    "heavy_fence",
    "wait",
    "wake",
    "wake_all",
    "prefetch",
    "assume",
];

/// Calls whose arguments say how long is paused or how often is read.
const PAUSES: [&str; 4] = ["relax_for", "Reads", "Relax", "from_ref"];

/// Marks a site that changes nothing, but notes that it is passed.
const BRANCH: &str = "branch";

/// Functions that only models call, or which make constants of a model.
const OF_MODELS: [&str; 1] = ["about_to_wrap"];

impl Switches {
    pub(crate) fn new(constants: Constants) -> Self {
        Self {
            sites: Vec::new(),
            folder: "",
            constants,
            files: Vec::new(),
            fields: BTreeMap::new(),
        }
    }

    /// Begins this file: what follows is of it.
    pub(crate) fn enter(&mut self, file: &Path) {
        let file = file.display();
        self.files.push(format!("{}/src/{file}", self.folder));
        self.fields.clear();
    }

    /// Ends the file.
    pub(crate) fn leave(&mut self) {
        self.files.pop();
    }

    /// Puts switches into an item.
    pub(crate) fn item(&mut self, item: &mut Item) {
        let file = self.files.last().map_or("", |file| file);
        if file.is_empty() || file.ends_with("catalogue.rs") || file.ends_with("lock_api_impl.rs") {
            return;
        }
        if let Item::Struct(of) = item {
            self.add_fields(of.fields.iter().collect());
        }
        self.visit_item_mut(item);
    }

    fn add_fields(&mut self, fields: Vec<&Field>) {
        for (at, field) in fields.iter().enumerate() {
            let Some(name) = &field.ident else { return };
            let of = field.ty.to_token_stream().to_string();
            let same = |other: &&&Field| other.ty.to_token_stream().to_string() == of;
            let mut others = fields[at + 1..].iter().chain(&fields[..at]).filter(same);
            let other = others.next().and_then(|other| other.ident.as_ref());
            // A name that two structs of a file have is no sign of either.
            let known = self.fields.insert(
                name.to_string(),
                other.map_or_else(String::new, ToString::to_string),
            );
            if known.is_some() {
                self.fields.insert(name.to_string(), String::new());
            }
        }
    }

    /// Returns a new switch, by its number.
    fn site(&mut self, at: Span, change: impl Into<String>) -> u32 {
        let start = at.start();
        let file = self.files.last().cloned().unwrap_or_default();
        let site = (
            file,
            start.line as u32,
            start.column as u32 + 1,
            change.into(),
        );
        self.sites.push(site);
        self.sites.len() as u32
    }

    /// Puts another operator in the place of this one.
    fn operator(&mut self, op: &BinOp, left: &Expr, right: &Expr) -> Option<Expr> {
        let (new, bound): (TokenStream, bool) = match op {
            BinOp::Eq(_) => (quote!(!=), false),
            BinOp::Ne(_) => (quote!(==), false),
            BinOp::And(_) => (quote!(||), false),
            BinOp::Or(_) => (quote!(&&), false),
            BinOp::Lt(_) => (quote!(<=), true),
            BinOp::Le(_) => (quote!(<), true),
            BinOp::Gt(_) => (quote!(>=), true),
            BinOp::Ge(_) => (quote!(>), true),
            BinOp::Add(_) => (quote!(-), true),
            BinOp::Sub(_) => (quote!(+), true),
            BinOp::BitAnd(_) => (quote!(|), true),
            BinOp::BitOr(_) => (quote!(&), true),
            BinOp::Shl(_) => (quote!(>>), true),
            BinOp::Shr(_) => (quote!(<<), true),
            _ => return None,
        };
        if takes_apart(left) || takes_apart(right) {
            return None;
        }
        let site = self.site(op.span(), format!("{} -> {new}", op.to_token_stream()));
        Some(match op {
            BinOp::Eq(_) | BinOp::Ne(_) => {
                parse_quote!((crate::switch::on(#site) != (#left #op #right)))
            }
            _ if bound => parse_quote!(({
                let (left, right) = (#left, #right);
                if crate::switch::on(#site) { left #new right } else { left #op right }
            })),
            _ => {
                parse_quote!((if crate::switch::on(#site) { #left #new #right } else { #left #op #right }))
            }
        })
    }

    /// Makes a condition always true, and never.
    fn condition(&mut self, at: Span, condition: &mut Expr, always: bool) {
        let never = self.site(at, "condition always false");
        *condition = if takes_apart(condition) {
            parse_quote!(#condition && !crate::switch::on(#never))
        } else if always {
            let always = self.site(at, "condition always true");
            parse_quote!(crate::switch::force(#always, #never, #condition))
        } else {
            parse_quote!(crate::switch::force(u32::MAX, #never, #condition))
        };
    }

    /// Puts a sign at the beginning of a branch that is taken without a condition of its
    /// own: it changes nothing.
    fn branch(&mut self, at: Span, body: &mut Expr) {
        let is_macro = matches!(body, Expr::Macro(_));
        if !is_macro {
            let site = self.site(at, BRANCH);
            *body = parse_quote!({ crate::switch::reach(#site); #body });
        }
    }

    /// Returns whether a statement is a call or an assignment that may be left out.
    fn may_go(expression: &Expr) -> bool {
        match expression {
            Expr::MethodCall(call) => !ACCESSES.contains(&&*call.method.to_string()),
            Expr::Call(call) => {
                let name = call.func.to_token_stream().to_string();
                let name = name.rsplit("::").next().unwrap_or("").trim();
                !ACCESSES.contains(&name)
            }
            Expr::Assign(_) => true,
            Expr::Binary(of) => matches!(
                of.op,
                BinOp::AddAssign(_)
                    | BinOp::SubAssign(_)
                    | BinOp::BitOrAssign(_)
                    | BinOp::BitAndAssign(_)
            ),
            Expr::Unsafe(of) => match &of.block.stmts[..] {
                [Stmt::Expr(inner, _)] => Self::may_go(inner),
                _ => false,
            },
            _ => false,
        }
    }

    /// Puts switches into a function; the answer of one that says yes or no can
    /// be negated.
    fn function(&mut self, signature: &Signature, block: &mut Block) {
        let says = match &signature.output {
            ReturnType::Type(_, of) => of.to_token_stream().to_string() == "bool",
            ReturnType::Default => false,
        };
        let answer = match block.stmts.last() {
            Some(Stmt::Expr(tail, None)) if says => match tail {
                Expr::If(_) | Expr::Match(_) | Expr::Block(_) | Expr::Loop(_) | Expr::Lit(_) => {
                    None
                }
                tail => Some(tail.span()),
            },
            _ => None,
        };
        visit_mut::visit_block_mut(self, block);
        if let (Some(at), Some(Stmt::Expr(tail, None))) = (answer, block.stmts.last_mut()) {
            let site = self.site(at, "answer negated");
            *tail = parse_quote!((crate::switch::on(#site) != (#tail)));
        }
    }
}

/// Returns whether a condition, or a part of it, takes a value apart, which it must do where it
/// stands.
fn takes_apart(condition: &Expr) -> bool {
    match condition {
        Expr::Let(_) => true,
        Expr::Binary(of) => takes_apart(&of.left) || takes_apart(&of.right),
        Expr::Paren(of) => takes_apart(&of.expr),
        _ => false,
    }
}

/// Returns whether a function is left as it is.
fn is_left(signature: &Signature) -> bool {
    signature.constness.is_some() || OF_MODELS.contains(&&*signature.ident.to_string())
}

impl VisitMut for Switches {
    fn visit_item_impl_mut(&mut self, of: &mut syn::ItemImpl) {
        let formats = of.trait_.as_ref().is_some_and(|(_, path, _)| {
            path.segments
                .last()
                .is_some_and(|last| last.ident == "Debug" || last.ident == "Display")
        });
        if !formats {
            visit_mut::visit_item_impl_mut(self, of);
        }
    }

    fn visit_item_const_mut(&mut self, _: &mut syn::ItemConst) {}
    fn visit_item_static_mut(&mut self, _: &mut syn::ItemStatic) {}
    fn visit_impl_item_const_mut(&mut self, _: &mut syn::ImplItemConst) {}
    fn visit_trait_item_const_mut(&mut self, _: &mut syn::TraitItemConst) {}
    fn visit_pat_mut(&mut self, _: &mut Pat) {}
    fn visit_type_mut(&mut self, _: &mut Type) {}
    fn visit_generic_argument_mut(&mut self, _: &mut GenericArgument) {}
    fn visit_generics_mut(&mut self, _: &mut syn::Generics) {}
    fn visit_attribute_mut(&mut self, _: &mut Attribute) {}
    fn visit_expr_const_mut(&mut self, _: &mut syn::ExprConst) {}

    fn visit_item_struct_mut(&mut self, _: &mut syn::ItemStruct) {}

    fn visit_item_fn_mut(&mut self, of: &mut ItemFn) {
        if !is_left(&of.sig) {
            self.function(&of.sig, &mut of.block);
        }
    }

    fn visit_impl_item_fn_mut(&mut self, of: &mut ImplItemFn) {
        if !is_left(&of.sig) {
            self.function(&of.sig, &mut of.block);
        }
    }

    fn visit_trait_item_fn_mut(&mut self, of: &mut syn::TraitItemFn) {
        if let Some(block) = &mut of.default
            && !is_left(&of.sig)
        {
            self.function(&of.sig, block);
        }
    }

    fn visit_expr_repeat_mut(&mut self, of: &mut syn::ExprRepeat) {
        self.visit_expr_mut(&mut of.expr);
    }

    // What is assigned to is a place, which no switch can stand for.
    fn visit_expr_assign_mut(&mut self, of: &mut syn::ExprAssign) {
        self.visit_expr_mut(&mut of.right);
    }

    fn visit_expr_binary_mut(&mut self, of: &mut syn::ExprBinary) {
        let assigns = matches!(
            of.op,
            BinOp::AddAssign(_)
                | BinOp::SubAssign(_)
                | BinOp::BitOrAssign(_)
                | BinOp::BitAndAssign(_)
        );
        if !assigns {
            self.visit_expr_mut(&mut of.left);
        }
        self.visit_expr_mut(&mut of.right);
    }

    fn visit_expr_reference_mut(&mut self, of: &mut syn::ExprReference) {
        if of.mutability.is_none() {
            self.visit_expr_mut(&mut of.expr);
        }
    }

    fn visit_expr_call_mut(&mut self, of: &mut syn::ExprCall) {
        let name = of.func.to_token_stream().to_string();
        let name = name.rsplit("::").next().unwrap_or("").trim();
        if !PAUSES.contains(&name) {
            of.args
                .iter_mut()
                .for_each(|argument| self.visit_expr_mut(argument));
        }
    }

    fn visit_expr_if_mut(&mut self, of: &mut ExprIf) {
        let at = of.cond.span();
        visit_mut::visit_expr_if_mut(self, of);
        self.condition(at, &mut of.cond, true);
    }

    fn visit_expr_while_mut(&mut self, of: &mut ExprWhile) {
        let at = of.cond.span();
        visit_mut::visit_expr_while_mut(self, of);
        self.condition(at, &mut of.cond, false);
    }

    fn visit_arm_mut(&mut self, arm: &mut Arm) {
        let at = arm.span();
        visit_mut::visit_arm_mut(self, arm);
        self.branch(at, &mut arm.body);
    }

    fn visit_local_mut(&mut self, local: &mut Local) {
        visit_mut::visit_local_mut(self, local);
        if let Some((_, other)) = local.init.as_mut().and_then(|init| init.diverge.as_mut()) {
            self.branch(other.span(), other);
        }
    }

    fn visit_stmt_mut(&mut self, statement: &mut Stmt) {
        let at = statement.span();
        visit_mut::visit_stmt_mut(self, statement);
        if let Stmt::Expr(expression, Some(_)) = statement
            && Self::may_go(expression)
        {
            let site = self.site(at, "statement left out");
            *statement = parse_quote!(if !crate::switch::on(#site) { #expression; });
        }
    }

    fn visit_expr_mut(&mut self, expression: &mut Expr) {
        let at = expression.span();
        // The place of a field is known before its base is changed.
        let member = match expression {
            Expr::Field(of) => match &of.member {
                Member::Named(name) => Some(name.clone()),
                Member::Unnamed(_) => None,
            },
            _ => None,
        };
        visit_mut::visit_expr_mut(self, expression);
        let new = match &*expression {
            Expr::Binary(of) => self.operator(&of.op, &of.left, &of.right),
            Expr::Unary(of) if matches!(of.op, UnOp::Not(_)) => {
                let inner = &of.expr;
                let site = self.site(at, "! -> nothing");
                Some(parse_quote!(({
                    let value = #inner;
                    if crate::switch::on(#site) { value } else { !value }
                })))
            }
            Expr::Lit(of) => match &of.lit {
                Lit::Int(_) => {
                    let site = self.site(at, format!("{} -> one more", of.to_token_stream()));
                    Some(parse_quote!(crate::switch::integer(#site, #of)))
                }
                Lit::Bool(value) => {
                    let site = self.site(at, format!("{} -> {}", value.value, !value.value));
                    Some(parse_quote!((crate::switch::on(#site) != #value)))
                }
                _ => None,
            },
            Expr::Path(of) => {
                let last = of.path.segments.last().map(|last| last.ident.to_string());
                let last = last.unwrap_or_default();
                let own = of.path.segments.len() == 1
                    || of.path.segments.len() == 2 && of.path.segments[0].ident == "Self";
                if own && of.qself.is_none() && self.constants.has(&last) {
                    let site = self.site(at, format!("{last} -> one more"));
                    Some(parse_quote!(crate::switch::integer(#site, #of)))
                } else {
                    None
                }
            }
            Expr::Field(of) => member.and_then(|name| {
                let other = self.fields.get(&name.to_string()).filter(|other| !other.is_empty())?;
                let other = syn::Ident::new(&other.clone(), name.span());
                let site = self.site(name.span(), format!("{name} -> {other}"));
                let base = &of.base;
                Some(parse_quote!((*if crate::switch::on(#site) { &#base.#other } else { &#base.#name })))
            }),
            _ => None,
        };
        if let Some(new) = new {
            *expression = new;
        }
    }

    fn visit_meta_mut(&mut self, _: &mut Meta) {}
}

/// Returns the attributes of an item.
pub(crate) fn attributes_mut(item: &mut Item) -> Option<&mut Vec<Attribute>> {
    Some(match item {
        Item::Const(of) => &mut of.attrs,
        Item::Enum(of) => &mut of.attrs,
        Item::ExternCrate(of) => &mut of.attrs,
        Item::Fn(of) => &mut of.attrs,
        Item::Impl(of) => &mut of.attrs,
        Item::Macro(of) => &mut of.attrs,
        Item::Mod(of) => &mut of.attrs,
        Item::Static(of) => &mut of.attrs,
        Item::Struct(of) => &mut of.attrs,
        Item::Trait(of) => &mut of.attrs,
        Item::Type(of) => &mut of.attrs,
        Item::Use(of) => &mut of.attrs,
        _ => return None,
    })
}
