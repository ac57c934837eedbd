"""The words as tables: one English lemma, one French lemma, so that a sentence has one translation.

A word reads `english/plural=french/plural`, a plural only where the rule does not give it, `_` for a space, no `=`
where both languages write it alike. Nouns stand in groups, which verbs and adjectives name to say what they go with.
"""

# group: (masculine, feminine)
NOUN_TABLE = {
    "animals": (
        "animal dog=chien cat=chat horse=cheval bird=oiseau rabbit=lapin lion monkey=singe elephant=éléphant"
        " wolf/wolves=loup fox=renard bear=ours pig=cochon duck=canard donkey=âne tiger=tigre hedgehog=hérisson"
        " owl=hibou/hiboux squirrel=écureuil camel=chameau hamster zebra=zèbre crocodile penguin=manchot lizard=lézard",
        "cow=vache mouse/mice=souris turtle=tortue goat=chèvre giraffe=girafe frog=grenouille hen=poule bee=abeille"
        " spider=araignée ant=fourmi goose/geese=oie ostrich/ostriches=autruche panther=panthère gazelle otter=loutre"
        " antelope=antilope ladybird=coccinelle mare=jument swallow=hirondelle magpie=pie weasel=belette",
    ),
    "kin": (
        "uncle=oncle father=père brother=frère son=fils grandfather=grand-père/grands-pères friend=ami nephew=neveu"
        " neighbour=voisin",
        "aunt=tante mother=mère sister=sœur grandmother=grand-mère/grands-mères niece=nièce",
    ),
    "people": (
        "man/men=homme boy=garçon child/children=enfant baby=bébé king=roi prince waiter=serveur actor=acteur"
        " tourist=touriste soldier=soldat policeman/policemen=policier hero/heroes=héros guest=invité",
        "woman/women=femme girl=fille queen=reine princess=princesse waitress=serveuse actress=actrice lady=dame"
        " witch=sorcière",
    ),
    "food": (
        "cake=gâteau egg=œuf sandwich=sandwich/sandwichs yoghurt=yaourt lemon=citron melon mushroom=champignon"
        " biscuit vegetable=légume bean=haricot pineapple=ananas/ananas lobster=homard croissant onion=oignon"
        " apricot=abricot leek=poireau",
        "apple=pomme orange pear=poire banana=banane strawberry=fraise cherry=cerise tomato/tomatoes=tomate"
        " carrot=carotte potato/potatoes=pomme_de_terre/pommes_de_terre pancake=crêpe tart=tarte peach=pêche"
        " oyster=huître omelette olive",
    ),
    "stuff": (
        "bread=pain cheese=fromage rice=riz butter=beurre honey=miel sugar=sucre chocolate=chocolat ham=jambon"
        " fish/fish=poisson chicken=poulet",
        "meat=viande soup=soupe jam=confiture salad=salade cream=crème ice_cream=glace oil=huile",
    ),
    "drinks": ("coffee=café tea=thé milk=lait wine=vin cider=cidre", "water=eau beer=bière lemonade=limonade"),
    "clothes": (
        "coat=manteau hat=chapeau jumper=pull glove=gant suit=costume apron=tablier uniform=uniforme necklace=collier",
        "shirt=chemise skirt=jupe dress=robe shoe=chaussure sock=chaussette scarf/scarves=écharpe tie=cravate"
        " jacket=veste boot=botte belt=ceinture cap=casquette ring=bague",
    ),
    "dishes": (
        "knife/knives=couteau glass=verre bowl=bol",
        "cup=tasse plate=assiette fork=fourchette spoon=cuillère bottle=bouteille",
    ),
    "things": (
        "pen=stylo pencil=crayon telephone=téléphone computer=ordinateur mirror=miroir ticket=billet toy=jouet"
        " hammer=marteau umbrella=parapluie pillow=oreiller comb=peigne stamp=timbre wallet=portefeuille"
        " present=cadeau painting=tableau",
        "key=clé lamp=lampe candle=bougie photo clock=horloge ball=balle doll=poupée ladder=échelle axe=hache"
        " rope=corde blanket=couverture brush=brosse map=carte flower=fleur",
    ),
    "bags": ("bag=sac basket=panier barrel=tonneau", "suitcase=valise box=boîte crate=caisse"),
    "reading": ("book=livre newspaper=journal novel=roman magazine dictionary=dictionnaire", ""),
    "writing": ("poem=poème message article", "letter=lettre story=histoire postcard=carte_postale/cartes_postales"),
    "furniture": (
        "bed=lit sofa=canapé armchair=fauteuil desk=bureau carpet=tapis",
        "table chair=chaise wardrobe=armoire shelf/shelves=étagère",
    ),
    "openings": ("drawer=tiroir gate=portail", "door=porte window=fenêtre"),
    "rooms": (
        "garden=jardin garage park=parc village living_room=salon",
        "kitchen=cuisine bedroom=chambre house=maison bathroom=salle_de_bains church=église",
    ),
    "places": (
        "market=marché restaurant hotel=hôtel hospital=hôpital museum=musée cinema=cinéma theatre=théâtre"
        " supermarket=supermarché zoo castle=château airport=aéroport stadium=stade",
        "school=école station=gare library=bibliothèque bakery=boulangerie pharmacy=pharmacie bank=banque beach=plage"
        " university=université swimming_pool=piscine factory=usine bookshop=librairie farm=ferme",
    ),
    "ways": (
        "bridge=pont field=champ path=chemin desert=désert tunnel stream=ruisseau lake=lac swamp=marais",
        "street=rue road=route avenue river=rivière footbridge=passerelle forest=forêt meadow=prairie valley=vallée"
        " courtyard=cour",
    ),
    "heights": (
        "wall=mur rock=rocher",
        "hill=colline mountain=montagne cliff=falaise fence=clôture dune hedge=haie barrier=barrière",
    ),
    "hollows": (
        "hole=trou ditch=fossé shed=hangar corridor=couloir",
        "cave=grotte barn=grange stable=écurie hut=cabane cage puddle=flaque",
    ),
    "loads": (
        "sledge=traîneau wagon=chariot trunk=coffre",
        "cart=charrette plough=charrue stone=pierre branch=branche",
    ),
    "vehicles": (
        "bus train bicycle=vélo boat=bateau plane=avion lorry=camion taxi helicopter=hélicoptère",
        "car=voiture motorbike=moto",
    ),
    "instruments": (
        "piano violin=violon accordion=accordéon",
        "guitar=guitare flute=flûte harp=harpe trumpet=trompette",
    ),
    "others": ("tree=arbre", "sea=mer tower=tour"),
}  # fmt: skip

JOB_TABLE = (
    "baker=boulanger/boulangère doctor=médecin/médecin teacher=professeur/professeure student=étudiant/étudiante"
    " farmer=agriculteur/agricultrice nurse=infirmier/infirmière lawyer=avocat/avocate engineer=ingénieur/ingénieure"
    " journalist=journaliste singer=chanteur/chanteuse dancer=danseur/danseuse writer=écrivain/écrivaine"
    " cook=cuisinier/cuisinière pilot=pilote dentist=dentiste architect=architecte painter=peintre"
    " gardener=jardinier/jardinière hairdresser=coiffeur/coiffeuse pharmacist=pharmacien/pharmacienne"
    " musician=musicien/musicienne butcher=boucher/bouchère judge=juge photographer=photographe"
    " translator=traducteur/traductrice mechanic=mécanicien/mécanicienne secretary=secrétaire"
)

# (groups the adjectives go with, `english=masculine/feminine`)
ADJECTIVE_TABLE = (
    (
        "animals kin people",
        "tired=fatigué sick=malade sad=triste shy=timide nervous=nerveux exhausted=épuisé lazy=paresseux"
        " worried=inquiet/inquiète furious=furieux curious=curieux proud=fier clumsy=maladroit stubborn=têtu"
        " cautious=prudent frightened=effrayé injured=blessé impatient sleepy=endormi brave=courageux greedy=gourmand"
        " young=jeune distracted=distrait",
    ),
    ("animals", "ferocious=féroce"),
    (
        "kin people jobs",
        "happy=heureux rich=riche kind=gentil/gentille polite=poli famous=célèbre intelligent strong=fort weak=faible"
        " funny=drôle tall=grand serious=sérieux honest=honnête jealous=jaloux/jalouse discreet=discret/discrète",
    ),
    (
        "people jobs vehicles reading",
        "French=français Italian=italien Spanish=espagnol German=allemand English=anglais American=américain"
        " Greek=grec/grecque",
    ),
    (
        "clothes things bags dishes vehicles furniture openings",
        "white=blanc/blanche black=noir red=rouge blue=bleu green=vert yellow=jaune grey=gris pink=rose"
        " brown=marron/marron purple=violet/violette",
    ),
    (
        "animals clothes things bags dishes vehicles furniture rooms places openings heights hollows loads",
        "big=grand small=petit",
    ),
    (
        "clothes things bags reading dishes vehicles furniture rooms places openings animals people instruments",
        "old=vieux/vieille beautiful=beau/belle",
    ),
    (
        "clothes things bags reading writing dishes vehicles furniture places openings instruments",
        "new=nouveau/nouvelle",
    ),
    ("clothes things bags vehicles furniture rooms", "pretty=joli ugly=laid"),
    ("reading writing stuff drinks food", "good=bon/bonne bad=mauvais"),
    ("reading writing", "interesting=intéressant boring=ennuyeux difficult=difficile useful=utile sad=triste"),
    ("clothes things bags furniture vehicles instruments", "expensive=cher"),
    ("clothes dishes bags vehicles furniture rooms openings", "clean=propre dirty=sale"),
    ("dishes bags", "fragile"),
    ("dishes bags rooms places", "empty=vide full=plein"),
    ("openings", "open=ouvert closed=fermé"),
    ("bags loads", "heavy=lourd light=léger bulky=encombrant"),
    ("vehicles animals", "fast=rapide slow=lent"),
    ("vehicles rooms places", "modern=moderne"),
    ("stuff food", "fresh=frais/fraîche delicious=délicieux"),
    ("stuff", "cold=froid hot=chaud salty=salé spicy=épicé"),
    ("drinks", "cold=froid hot=chaud bitter=amer/amère sweet=sucré"),
    ("food", "hard=dur rotten=pourri sour=acide dry=sec/sèche tender=tendre"),
    ("ways", "long=long/longue wide=large narrow=étroit dangerous=dangereux muddy=boueux"),
    ("hollows", "deep=profond dark=sombre damp=humide"),
    ("heights", "high=haut/haute steep=raide slippery=glissant smooth=lisse low=bas/basse"),
    ("writing", "long=long/longue short=court"),
    ("rooms places", "quiet=calme"),
    ("", "crowded=bondé dense"),
)  # fmt: skip
PRENOMINAL = frozenset({"big", "small", "old", "beautiful", "new", "pretty", "good", "bad", "young", "tall", "long"})
CLASSIFYING = frozenset({
    "French", "Italian", "Spanish", "German", "English", "American", "Greek", "white", "black", "red", "blue", "green",
    "yellow", "grey", "pink", "brown", "purple",
})  # fmt: skip
"""Colours and nations: behind another adjective, and without "very"."""
UNGRADED = CLASSIFYING | {
    "open", "closed", "empty", "full", "rotten", "exhausted", "furious", "ferocious", "delicious", "injured",
}  # fmt: skip
"""What is so or is not: no "very", no "more"."""
PREDICATIVE = frozenset({"high", "low"})
"""Said behind être only: before or behind a noun the French is an idiom."""
ATTRIBUTIVE = frozenset({"new"})
"""Said before a noun only: behind être, French has another word."""
BEFORE_VOWEL = {"beau": "bel", "vieux": "vieil", "nouveau": "nouvel"}

# Objects are groups, or nouns with a plus.
ACTION_TABLE = """
eat=manger food stuff
drink=boire drinks
taste=goûter stuff drinks
order=commander food stuff drinks
buy=acheter food stuff drinks clothes things bags reading furniture vehicles
sell=vendre food clothes things furniture vehicles reading
read=lire reading writing
write=écrire writing +novel
look_for=chercher clothes things bags reading animals
wear=porter clothes
carry=porter bags +ladder +table +chair
wash=laver clothes dishes vehicles +window
clean=nettoyer rooms furniture +door +cage +stable
repair=réparer vehicles furniture +clock +computer +telephone +lamp
open=ouvrir openings +box +suitcase +bottle +letter
close=fermer openings +box +suitcase
take=prendre bags things reading
bring=apporter food drinks stuff dishes +present +flower
draw=dessiner animals +flower +castle +tree +boat +house
paint=peindre openings +wall +chair +table +fence
build=construire +bridge +wall +house +tower +hut +castle +boat +barn
drive=conduire +car +bus +lorry +taxi
feed=nourrir animals
watch=regarder animals +child +boat
visit=visiter +museum +castle +village +farm +factory +tower +zoo
prepare=préparer +cake +soup +sandwich +salad +coffee +tea +tart +pancake +omelette
cut=couper +bread +meat +cheese +cake +apple +rope +branch +tart +tomato +tree
choose=choisir clothes reading things +cake +car
hide=cacher things bags +letter
wait_for=attendre kin people +bus +train +taxi +plane
help=aider kin people jobs
call=appeler kin jobs +policeman +waiter +taxi
invite=inviter kin jobs +actor +actress
follow=suivre animals people +path +road +river
admire=admirer +castle +mountain +painting +forest +garden +hero +queen +sea +tree +tower
use=utiliser +computer +dictionary +map +ladder +hammer +axe +knife +telephone +brush
borrow=emprunter reading +car +bicycle +umbrella +pen +ladder +suit
photograph=photographier animals people +castle +mountain +church +tree +tower +sea
push=pousser +cart +wagon +car +crate +barrel +wardrobe
pull=tirer +cart +sledge +plough +rope +wagon
cross=traverser ways
climb=escalader +wall +rock +hill +mountain +cliff +fence +gate +dune
"""
EVENT_TABLE = """
lose=perdre clothes things bags reading
find=trouver clothes things bags reading animals
break=casser dishes +mirror +lamp +window +chair +clock +toy
forget=oublier bags things clothes reading
receive=recevoir writing +present +flower +crate
see=voir animals people jobs kin +castle +sea +boat
hear=entendre animals people +train +plane
meet=rencontrer people jobs kin +wolf +bear
steal=voler bags things vehicles +necklace +ring
finish=finir writing +book +novel +magazine
miss=rater +train +bus +plane +boat
"""
STATE_TABLE = """
know=connaître people jobs kin +village +museum +restaurant +story
want=vouloir food stuff drinks things clothes
understand=comprendre writing reading
"""
# Objects are where it is done.
INTRANSITIVE_TABLE = """
sleep=dormir rooms +hotel +barn +hut +station
work=travailler places rooms
sing=chanter rooms +theatre +school +street +stadium +restaurant
dance=danser rooms +theatre +castle +street +beach +restaurant
walk=marcher +forest +park +garden +street +field +desert +village
run=courir +park +garden +forest +stadium +beach +courtyard +corridor
swim=nager +swimming_pool +lake +river +sea +stream
cry=pleurer rooms +hospital +theatre +school
laugh=rire rooms +theatre +cinema +restaurant
study=étudier rooms +library +university +school
wait=attendre rooms places
arrive=arriver
leave=partir
go_out=sortir
come_back=revenir
"""
OTHER_VERBS = (
    "be=être have=avoir go=aller stay=rester live=habiter speak=parler learn=apprendre play=jouer give=donner"
    " show=montrer send=envoyer lend=prêter think=penser believe=croire hope=espérer say=dire like=aimer love=adorer"
    " hate=détester prefer=préférer can=pouvoir must=devoir enter=entrer_dans jump_over=sauter_par-dessus"
    " cost=coûter become=devenir know=savoir travel=voyager count=compter"
)

NAMES = {"Paul": False, "Thomas": False, "Lucas": False, "Louis": False, "Nicolas": False, "Antoine": False,
         "Marie": True, "Sophie": True, "Alice": True, "Emma": True, "Julie": True, "Isabelle": True}  # fmt: skip

COUNTRIES = {
    "France": "la France", "Italy": "la Italie", "Spain": "la Espagne", "Germany": "la Allemagne",
    "England": "la Angleterre", "Belgium": "la Belgique", "Switzerland": "la Suisse", "Canada": "le Canada",
    "Japan": "le Japon", "Portugal": "le Portugal", "Brazil": "le Brésil", "Mexico": "le Mexique",
    "the United States": "les États-Unis",
}  # fmt: skip
CITIES = {"Paris": "Paris", "Lyon": "Lyon", "Bordeaux": "Bordeaux", "London": "Londres", "Rome": "Rome",
          "Berlin": "Berlin", "Madrid": "Madrid", "Geneva": "Genève", "Brussels": "Bruxelles", "Lisbon": "Lisbonne",
          "Athens": "Athènes", "Venice": "Venise"}  # fmt: skip
LANGUAGES = {"French": "français", "English": "anglais", "Spanish": "espagnol", "German": "allemand",
             "Italian": "italien", "Greek": "grec"}  # fmt: skip
GAMES = {"football": "le football", "tennis": "le tennis", "chess": "les échecs", "cards": "les cartes",
         "basketball": "le basket", "rugby": "le rugby"}  # fmt: skip

DAYS = {"Monday": "lundi", "Tuesday": "mardi", "Wednesday": "mercredi", "Thursday": "jeudi", "Friday": "vendredi",
        "Saturday": "samedi", "Sunday": "dimanche"}  # fmt: skip
ON_DAYS = {f"on {day}": jour for day, jour in DAYS.items()}
PAST_TIMES = {"yesterday": "hier", "last week": "la semaine dernière", "last night": "hier soir",
              "last month": "le mois dernier", "two days ago": "il y a deux jours", "a week ago": "il y a une semaine",
              "three years ago": "il y a trois ans", **ON_DAYS}  # fmt: skip
PRESENT_TIMES = {"now": "maintenant", "today": "aujourd'hui", "this morning": "ce matin"}
FUTURE_TIMES = {"tomorrow": "demain", "tonight": "ce soir", "next week": "la semaine prochaine",
                "next month": "le mois prochain", "next year": "l'année prochaine", "this afternoon": "cet après-midi",
                **ON_DAYS}  # fmt: skip
HABIT_TIMES = {"every day": "tous les jours", "every morning": "tous les matins", "every week": "toutes les semaines",
               "in winter": "en hiver", "in summer": "en été", "in autumn": "en automne", "in spring": "au printemps",
               **{f"on {day}s": f"le {jour}" for day, jour in DAYS.items()}}  # fmt: skip
FREQUENCIES = {"always": "toujours", "often": "souvent", "sometimes": "parfois", "rarely": "rarement"}
WHEREABOUTS = {"here": "ici", "outside": "dehors", "over there": "là-bas"}
MANNERS = {"slowly": "lentement", "quickly": "rapidement"}
HOURS_OF_DAY = {"early": "tôt", "late": "tard"}
DEGREES = {"very": "très", "too": "trop", "really": "vraiment", "quite": "assez", "so": "si"}
PREPOSITIONS = {"on": "sur", "under": "sous", "behind": "derrière", "in front of": "devant"}
